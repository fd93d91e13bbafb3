"""A law between processors: who holds a permit, or waits for one, is the same for `permits` and for `runs`.

It holds when no message is on its way between them. `kapelle verify --data` checks it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kapelle.processors.permits.tables import PermitTables
from kapelle.processors.runs.tables import Runs
from kapelle.schemas.contracts import StepStatus


class Claim(NamedTuple):
    """What is limited, and the attempt that holds a permit of it or waits for one."""

    limited: str
    key: str
    step_id: str
    run_id: int
    iteration: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.limited}: step {self.step_id!r} of {self.key}/run {self.run_id}, attempt {self.attempt}"


def permits_are_those_of_attempts(permits: Iterable[PermitTables], runs: Iterable[Runs]) -> Iterator[str]:
    """Each attempt that holds a permit or waits for one is the same by `permits` and by `runs`."""
    known = {claim: is_held for tables in permits for claim, is_held in _by_permits(tables)}
    for tables in runs:
        for claim, is_held in _by_attempts(tables):
            found = known.pop(claim, None)
            if found is not is_held:
                yield f"{claim} {_stands(is_held)}, but by permits it {_stands(found)}"
    for claim, is_held in sorted(known.items()):
        yield f"{claim} {_stands(is_held)} by permits, but the attempt does not know it"


def _by_permits(tables: PermitTables) -> Iterator[tuple[Claim, bool]]:
    for place, row in tables.permits.prefix(()):
        yield Claim(*place), row.is_held


def _by_attempts(tables: Runs) -> Iterator[tuple[Claim, bool]]:
    for (key, step_id), row in tables.steps.prefix(()):
        # It asks for one after the other: the last one is what it waits for.
        asked = row.held + (row.status is StepStatus.WAITING_FOR_PERMITS)
        for number, limited in enumerate(row.permits[:asked]):
            yield Claim(limited, key, step_id, row.run_id, row.iteration, row.attempt), number < row.held


def _stands(is_held: bool | None) -> str:
    return {True: "holds a permit", False: "waits for a permit", None: "is not there"}[is_held]
