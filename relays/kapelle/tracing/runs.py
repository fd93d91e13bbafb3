"""Runs and attempts of their steps, as spans: from the record that each begins with to the one that it ends with."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.runs.states import COMPLETE, FAILED, TERMINAL
from kapelle.processors.wiring import ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.tracing.ids import Ids
from kapelle.tracing.memory import Begun
from kapelle.tracing.origins import WHAT, Origin, origin_of
from kapelle.tracing.spans import Attributes, Moment, Past, Span, Verdict

MOMENTS_MAX: Final = 100  # of one attempt; later ones are not told
NEVER_BEGAN: Final = frozenset({StepStatus.UNSATISFIED, StepStatus.DISABLED, StepStatus.SKIPPED})

VERDICTS: Final[Mapping[InstanceStatus, Verdict]] = {
    InstanceStatus.SUCCEEDED: Verdict.OK,
    InstanceStatus.FAILED: Verdict.ERROR,
    InstanceStatus.TIMED_OUT: Verdict.ERROR,
    InstanceStatus.STOPPED: Verdict.UNSET,  # somebody wanted it so
}
STEP_VERDICTS: Final[Mapping[StepStatus, Verdict]] = {
    **dict.fromkeys(TERMINAL, Verdict.UNSET),
    **dict.fromkeys(COMPLETE - NEVER_BEGAN, Verdict.OK),
    **dict.fromkeys(FAILED | {StepStatus.TIMED_OUT}, Verdict.ERROR),
}

Name = tuple[str, int, int]  # of an attempt: step, iteration, attempt


class Attempt(msgspec.Struct):
    """An attempt that has begun."""

    at_ms: int
    moments: list[Moment]

    def tell(self, *moments: Moment) -> None:
        self.moments += moments[: MOMENTS_MAX - len(self.moments)]


class Run(msgspec.Struct, frozen=True):
    """A run that has begun, with its attempts that have."""

    run_id: int
    origin: Origin
    span_id: int
    at_ms: int
    attempts: dict[Name, Attempt]
    name: str


class Runs:
    """The runs of one partition. All records of an instance stand on the same one."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._runs: Begun[str, Run] = Begun()

    @property
    def since(self) -> int | None:
        return self._runs.since

    def of(self, past: Past) -> Iterator[Span]:
        tell = TOLD.get(type(past.entry.value))
        if tell is not None:
            yield from tell(self, past, past.entry.value)

    def run_started(self, past: Past, event: c.RunStarted) -> Iterator[Span]:
        origin = origin_of(self._ids, event)
        if origin.trace.is_sampled:
            span_id = self._ids.run(event.workflow_id, event.instance_id, event.run_id)
            what = "run" if event.parent is None else WHAT.get(event.parent.kind, "run")
            run = Run(event.run_id, origin, span_id, event.at_ms, {}, f"{what} {origin.name}")
            self._runs.begin(past.entry.key, past.entry.offset, run)
        yield from ()

    def run_ended(self, past: Past, event: c.RunEnded) -> Iterator[Span]:
        run = self._known(past, event.run_id)
        if run is None:
            return
        self._runs.end(past.entry.key)
        named = _run(past, event.run_id) | {"kapelle.status": event.run_status.value}
        yield Span(
            name=run.name,
            trace_id=run.origin.trace.id,
            span_id=run.span_id,
            parent_id=run.origin.parent_id,
            is_parent_remote=run.origin.is_remote,
            start_ms=run.at_ms,
            end_ms=event.at_ms,
            attributes=named | run.origin.attributes | past.coordinates,
            verdict=VERDICTS.get(event.run_status, Verdict.UNSET),
            reason=event.reason,
        )

    def step_changed(self, past: Past, event: c.StepChanged) -> Iterator[Span]:
        run, name, last = self._known(past, event.run_id), _name(event), event.statuses[-1]
        if run is None:
            return
        if StepStatus.CREATED in event.statuses and last not in NEVER_BEGAN:
            run.attempts.setdefault(name, Attempt(event.at_ms, []))
        attempt = run.attempts.get(name)
        if attempt is None:
            return  # it never began, or has ended: somebody may still say that one which failed is not repeated
        attempt.tell(*(Moment(status.value, event.at_ms) for status in event.statuses))
        if last in STEP_VERDICTS:
            del run.attempts[name]
            yield self._attempt(past, event, run, attempt)

    def _attempt(self, past: Past, event: c.StepChanged, run: Run, attempt: Attempt) -> Span:
        named: Attributes = {
            "kapelle.step": event.step_id,
            "kapelle.iteration": event.iteration,
            "kapelle.attempt": event.attempt,
            "kapelle.status": event.statuses[-1].value,
        }
        return Span(
            name=f"step {event.step_id}",
            trace_id=run.origin.trace.id,
            span_id=self._ids.attempt(run.span_id, *_name(event)),
            parent_id=run.span_id,
            start_ms=attempt.at_ms,
            end_ms=event.at_ms,
            attributes=_run(past, event.run_id) | named | past.coordinates,
            moments=tuple(attempt.moments),
            verdict=STEP_VERDICTS[event.statuses[-1]],
            reason=event.reason,
        )

    def dependency_matched(self, past: Past, event: c.DependencyMatched) -> Iterator[Span]:
        run = self._known(past, event.run_id)
        attempt = run.attempts.get(_name(event)) if run is not None else None
        if attempt is not None:
            named: Attributes = {"kapelle.signal": event.name, "kapelle.signal.number": event.sequence}
            attempt.tell(Moment("DEPENDENCY_MATCHED", event.at_ms, named))
        yield from ()

    def _known(self, past: Past, run_id: int) -> Run | None:
        """The run, if we have seen it begin and it is to be told of."""
        run = self._runs.get(past.entry.key)
        return run if run is not None and run.run_id == run_id else None


TOLD: Final[Mapping[type[object], Callable[[Runs, Past, Any], Iterator[Span]]]] = {
    c.RunStarted: Runs.run_started,
    c.RunEnded: Runs.run_ended,
    c.StepChanged: Runs.step_changed,
    c.DependencyMatched: Runs.dependency_matched,
}


def _run(past: Past, run_id: int) -> Attributes:
    workflow_id, instance_id = ids_of(past.entry.key)
    return {"kapelle.workflow": workflow_id, "kapelle.instance": instance_id, "kapelle.run": run_id}


def _name(event: c.StepChanged | c.DependencyMatched) -> Name:
    return event.step_id, event.iteration, event.attempt
