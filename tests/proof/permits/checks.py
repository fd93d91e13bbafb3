"""What must hold of permits and breakpoints, as one list of violations. An empty one is the proof.

The laws are in `admissions` (each limit), `attempts` (each attempt, and what both histories say of it) and `pausing`
(breakpoints). Here they are put together: at any cut at rest, and in the end.
"""

from collections import Counter
from collections.abc import Iterator

from kapelle.processors.wiring import PERMIT_EVENTS, RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from tests.proof.checks import Seen
from tests.proof.composites.checks import Instance, instances_of, tree_violations
from tests.proof.permits.admissions import Book, admission_violations, books_of, idle_violations
from tests.proof.permits.attempts import Attempts, exchange_violations
from tests.proof.permits.histories import all_of, ancestry_of
from tests.proof.permits.pausing import Pauses
from tests.proof.permits.workload import CALL, LOOP, Flow, Work, iteration

DONE = frozenset({StepStatus.SUCCEEDED, StepStatus.SKIPPED, StepStatus.COMPLETED_WITH_ERROR})


class Found:
    """All that a whole history tells of permits and breakpoints."""

    def __init__(self, seen: Seen, work: Work) -> None:
        ancestry = ancestry_of(seen)
        self.seen = seen
        self.work = work
        self.books: dict[str, Book] = books_of(seen)
        self.attempts = Attempts(seen, ancestry, work)
        self.pauses = Pauses(seen, ancestry)

    def at_rest(self) -> list[str]:
        """What is wrong at a cut at rest: nothing runs that can go on, and no message is on its way."""
        return [
            *admission_violations(self.books),
            *idle_violations(self.books),
            *self.attempts.problems,
            *exchange_violations(self.seen, self.attempts),
            *self.pauses.problems,
            *self.pauses.at_rest(),
            *_letters(self.seen),
        ]

    def in_the_end(self) -> list[str]:
        """What is wrong when all is mended: the same, and whatever is held, queued, paused or not done."""
        return [
            *self.at_rest(),
            *(f"{key}: {book.held | book.waiting.keys()} are left" for key, book in self.books.items() if _left(book)),
            *self.pauses.left(),
            *self.unfinished(),
            *tree_violations(self.seen),
        ]

    def unfinished(self) -> list[str]:
        """Steps that are not done. Nothing is expected below a skipped step."""
        instances = instances_of(self.seen)
        return [text for flow, key in self.work.instances for text in _unfinished(flow, key, instances, self.work)]

    def counts(self) -> dict[str, int]:
        """What happened, in figures."""
        found = Counter(self.pauses.counts)
        for stream in (PERMIT_EVENTS.name, RUN_EVENTS.name, WORKFLOW_EVENTS.name):
            found.update(NAMES[type(event)] for _, event in all_of(self.seen, stream) if type(event) in NAMES)
        for _, event in all_of(self.seen, PERMIT_EVENTS.name):
            if isinstance(event, c.LimitSet) and event.max == 0:
                found["limits of 0"] += 1
            elif isinstance(event, c.PermitGranted) and event.has_waited:
                found["permits granted after a wait"] += 1
            elif isinstance(event, c.PermitReturned) and not event.was_held:
                found["places in a queue given up"] += 1
        for _, event in all_of(self.seen, RUN_EVENTS.name):
            if isinstance(event, c.StepChanged):
                found.update(f"attempts {status}" for status in event.statuses if status in ENDS)
        found["longest row of admissions that passed over a class"] = max(
            (book.longest for book in self.books.values()), default=0
        )
        return dict(found)


ENDS = frozenset(
    {
        StepStatus.SUCCEEDED,
        StepStatus.SKIPPED,
        StepStatus.STOPPED,
        StepStatus.FATALLY_FAILED,
        StepStatus.TIMEOUT_FAILED,
        StepStatus.TIMED_OUT,
        StepStatus.USER_FAILED,
        StepStatus.PLATFORM_FAILED,
    }
)
NAMES: dict[type, str] = {
    c.LimitSet: "limits set",
    c.LimitRemoved: "limits removed",
    c.PermitGranted: "permits granted",
    c.PermitReturned: "permits and places returned",
    c.BreakpointSet: "breakpoints set",
    c.BreakpointDeleted: "breakpoints deleted",
    c.BreakpointsChanged: "runs told of other breakpoints",
    c.RunStarted: "runs of instances",
    c.ActionTaken: "actions on runs and steps",
    c.RestartRequested: "restarts of ended instances",
    c.CommandRefused: "requests refused",
}


def _left(book: Book) -> bool:
    return bool(book.held or book.waiting)


def _letters(seen: Seen) -> list[str]:
    letters = [letter for rows in seen.get("dead-letters", {}).values() for _, letter in rows]
    return [f"expected no dead letters, but found {letter}" for letter in letters]


def _unfinished(flow: Flow, key: str, instances: dict[str, Instance], work: Work) -> Iterator[str]:
    instance = instances.get(key)
    if instance is None or instance.last is None or instance.last.status is not InstanceStatus.SUCCEEDED:
        how = "nothing" if instance is None or instance.last is None else f"{instance.last.status}"
        yield f"expected {key} to have succeeded, but found {how}"
        return
    yield from _undone(key, instance, flow.outer)
    if flow.body and instance.steps.get(LOOP) is StepStatus.SUCCEEDED:
        for number in range(1, flow.side + 1):
            child = instances.get(iteration(key, number))
            if child is None:
                yield f"expected {key} to have iteration {number}, but found none"
            else:
                yield from _undone(child.key, child, flow.inner)
    if flow.twig and instance.steps.get(CALL) is StepStatus.SUCCEEDED:
        child = instances.get(instance.fans[CALL].child.get(1, ""))
        if child is None:
            yield f"expected {key} to have an instance of {flow.twig}, but found none"
        else:
            yield from _undone(child.key, child, work.flows[flow.twig].outer)


def _undone(key: str, instance: Instance, steps: tuple[str, ...]) -> Iterator[str]:
    for step_id in steps:
        status = instance.steps.get(step_id)
        if status not in DONE:
            yield f"expected step {step_id} of {key} to be done, but it is {status}"
