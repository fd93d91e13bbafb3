"""Loops of a run: an iteration is over when all its steps are, and then it is repeated or left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kapelle.processors.params import ParamError
from kapelle.processors.runs.tables import LoopRow
from kapelle.schemas import contracts as c

if TYPE_CHECKING:
    from kapelle.processors.runs.execution import Execution

ITERATIONS_MAX: Final = 25_000


class LoopTooLong(ParamError):
    """A loop would be repeated more often than it may be."""

    def __init__(self, header: str) -> None:
        super().__init__(f"Expected the loop of {header!r} to end within {ITERATIONS_MAX:,} iterations, but it did not")
        self.header = header


def loop_of(execution: Execution, header: str) -> LoopRow:
    """How far a loop is."""
    row = execution.state.loops.get((execution.key, header))
    if row is None:
        raise ValueError(f"Expected {execution.key!r} to know the loop of {header!r}, but it does not")
    return row


def check_iterations(execution: Execution, back: Mapping[str, bool]) -> None:
    """Refuse to lead back into a loop that has had all its iterations."""
    for header, again in back.items():
        if again and loop_of(execution, header).iteration >= ITERATIONS_MAX:
            raise LoopTooLong(header)


def end_iteration(execution: Execution, header: str) -> None:
    """If all of a loop is over, begin it anew or leave it."""
    row = loop_of(execution, header)
    if row.pending > 0:
        return
    if row.again:
        _enter(execution, header)
    else:
        _leave(execution, header, row)


def _enter(execution: Execution, header: str) -> None:
    plan, loops = execution.plan, execution.plan.graph.loops
    inside = [one for one, loop in loops.items() if loop.body <= loops[header].body]
    steps = tuple(one for one in plan.graph.order if one in loops[header].body)
    iterations = {one: loop_of(execution, one).iteration + 1 for one in inside}
    pending = {one: plan.pending[one] for one in inside}
    execution.emit(c.LoopEntered(execution.run.run_id, header, steps, iterations, pending, execution.now_ms))
    execution.ready.append(header)
    execution.in_parts()


def _leave(execution: Execution, header: str, row: LoopRow) -> None:
    arrived: dict[str, int] = {}
    satisfied: dict[str, bool] = {}
    for source, target in execution.plan.exits[header]:
        step = execution.row(source)
        arrived[target] = arrived.get(target, 0) + 1
        holds = step is not None and step.successors.get(target, False)
        satisfied[target] = satisfied.get(target, False) or holds
    around = execution.plan.graph.loops[header].parent
    run_id, now_ms = execution.run.run_id, execution.now_ms
    execution.draft.emit(c.LoopEnded(run_id, header, row.iteration, arrived, satisfied, now_ms, loop=around))
    execution.tell(arrived)
    if around is not None:
        end_iteration(execution, around)
