"""Do the public topics say what history says? Each number once, in order, nothing missing, nothing twice.

What is expected is made from the internal histories alone, without the publishers' code. A public partition of changes
is made from the partition of the same number of its input, so their orders must be the same. Only what happens to
iterations and rounds comes from all partitions: it must be in the order of the history of each instance.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kapelle.processors.publisher.streams import (
    INSTANCE_CHANGES,
    INSTANCE_STATE,
    SIGNAL_VERDICTS,
    STEP_CHANGES,
    STEP_STATE,
    WORKFLOW_CHANGES,
    WORKFLOW_STATE,
)
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Verdict, WorkflowChangeType
from tests.proof.checks import Seen

Fact = tuple[Any, ...]
INLINE: Final = ("maestro_foreach_", "maestro_while_")
STATES: Final = (WORKFLOW_STATE, INSTANCE_STATE, STEP_STATE)
KINDS: Final[dict[type, WorkflowChangeType]] = {
    c.VersionPushed: WorkflowChangeType.VERSION_PUSHED,
    c.VersionActivated: WorkflowChangeType.VERSION_ACTIVATED,
    c.WorkflowDeactivated: WorkflowChangeType.DEACTIVATED,
    c.PropertiesChanged: WorkflowChangeType.PROPERTIES_CHANGED,
    c.InstanceUnblocked: WorkflowChangeType.INSTANCE_UNBLOCKED,
    c.WorkflowDeleted: WorkflowChangeType.DELETED,
}
VERDICTS: Final[dict[type, Verdict]] = {
    c.SignalAccepted: Verdict.ACCEPTED,
    c.SignalDuplicated: Verdict.DUPLICATE,
    c.SignalTooLate: Verdict.TOO_LATE,
    c.SignalKept: Verdict.KEPT,
    c.SignalPassedOver: Verdict.PASSED_OVER,
    c.SignalExpired: Verdict.EXPIRED,
    c.TriggerFired: Verdict.FIRED,
    c.FiringSkipped: Verdict.SKIPPED,
}


def publishing_violations(seen: Seen) -> list[str]:
    """What is wrong with the public topics, in sentences."""
    problems = [*_misnumbered(seen)]
    problems += _compared(seen, WORKFLOW_EVENTS, WORKFLOW_CHANGES, (_workflow_facts, _told_of_workflow))
    problems += _compared(seen, WORKFLOW_EVENTS, INSTANCE_CHANGES, (_instance_facts, _told_of_instance))
    problems += _inline_violations(seen)
    problems += _compared(seen, RUN_EVENTS, STEP_CHANGES, (_step_facts, _told_of_step))
    for source in (SIGNAL_EVENTS, TRIGGER_EVENTS):
        problems += _compared(seen, source, SIGNAL_VERDICTS, (_verdict_facts, _told_by_verdict))
    return problems + _wrong_states(seen)


def _misnumbered(seen: Seen) -> Iterator[str]:
    for stream in (WORKFLOW_CHANGES, INSTANCE_CHANGES, STEP_CHANGES, SIGNAL_VERDICTS):
        numbers: dict[str, list[int]] = defaultdict(list)
        for partition in sorted(seen[stream.name]):
            for key, change in seen[stream.name][partition]:
                numbers[key].append(change.sequence)
        for key, found in numbers.items():
            if found != list(range(1, len(found) + 1)):
                yield f"{stream.name}: expected {key!r} to have the numbers 1 to {len(found)}, but found {found[:50]}"


def _compared(
    seen: Seen, source: Stream, stream: Stream, facts: tuple[Callable[..., Iterator[Fact]], Callable[[Any], Fact]]
) -> list[str]:
    """Partition by partition: the facts of history, and those that were published of it, are the same in order."""
    expected_of, found_of = facts
    problems = []
    for partition, events in seen[source.name].items():
        expected = [fact for key, event in events for fact in expected_of(key, event)]
        changes = [one for _, one in seen[stream.name].get(partition, []) if one.source_topic.endswith(source.name)]
        found = [found_of(change) for change in changes]
        if found != expected:
            at = next((n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), -1)
            problems.append(
                f"{stream.name}-{partition}: expected the {len(expected)} facts of {source.name}, but found "
                f"{len(found)}; the first difference is at {at}: {expected[at : at + 1]}, {found[at : at + 1]}"
            )
        offsets = [(change.source_partition, change.source_offset) for change in changes]
        if offsets != sorted(offsets) or any(place != partition for place, _ in offsets):
            problems.append(f"{stream.name}-{partition}: expected sources in the order of {source.name}")
    return problems


def _workflow_facts(key: str, event: Any) -> Iterator[Fact]:
    if type(event) in KINDS:
        yield key, KINDS[type(event)], event.request_id, event.at_ms


def _told_of_workflow(change: c.WorkflowChange) -> Fact:
    return change.workflow_id, change.change, change.request_id, change.at_ms


def _instance_facts(key: str, event: Any) -> Iterator[Fact]:
    if isinstance(event, c.InstanceLaunched):
        yield key, event.instance_id, event.run_id, InstanceStatus.IN_PROGRESS, event.at_ms
    elif isinstance(event, c.InstanceCreated | c.InstanceEnded):
        yield key, event.instance_id, event.run_id, event.status, event.at_ms


def _told_of_instance(change: c.InstanceStatusChange) -> Fact:
    return change.workflow_id, change.instance_id, change.run_id, change.status, change.at_ms


def _inline_violations(seen: Seen) -> Iterator[str]:
    """Instance by instance: what has happened to iterations and rounds, and what was published of it."""
    expected, found = defaultdict[str, list[Fact]](list), defaultdict[str, list[Fact]](list)
    for partition, events in seen[RUN_EVENTS.name].items():
        parents: dict[str, str] = {}
        for key, event in events:
            if key.startswith(INLINE) and isinstance(event, c.RunStarted | c.RunEnded):
                expected[key].append((*_inline_fact(key, event, parents), partition))
    for _, one in (row for rows in seen[INSTANCE_CHANGES.name].values() for row in rows):
        if one.source_topic.endswith(RUN_EVENTS.name):
            told = one.run_id, one.status, one.at_ms, one.parent, one.source_partition
            found[f"{one.workflow_id}/{one.instance_id}"].append(told)
    for key in expected.keys() | found.keys():
        if expected[key] != found[key]:
            yield f"{INSTANCE_CHANGES.name}: expected {expected[key]} of {key!r}, but found {found[key]}"


def _inline_fact(key: str, event: c.RunStarted | c.RunEnded, parents: dict[str, str]) -> Fact:
    if isinstance(event, c.RunEnded):
        return event.run_id, event.status, event.at_ms, parents[key]
    parents[key] = event.parent.key if event.parent is not None else ""
    return event.run_id, InstanceStatus.IN_PROGRESS, event.at_ms, parents[key]


def _step_facts(key: str, event: Any) -> Iterator[Fact]:
    if isinstance(event, c.StepChanged):
        yield key, event.run_id, event.step_id, event.attempt, event.statuses, event.at_ms


def _told_of_step(change: c.StepStatusChange) -> Fact:
    key = f"{change.workflow_id}/{change.instance_id}"
    return key, change.run_id, change.step_id, change.attempt, (*change.passed, change.status), change.at_ms


def _verdict_facts(_: str, event: Any) -> Iterator[Fact]:
    if type(event) in VERDICTS:
        joined: Sequence[Any] = event.signals if isinstance(event, c.TriggerFired | c.FiringSkipped) else [event]
        for signal in joined:
            yield VERDICTS[type(event)], signal.name, event.at_ms


def _told_by_verdict(verdict: c.SignalVerdict) -> Fact:
    return verdict.verdict, verdict.signal_name, verdict.at_ms


def _wrong_states(seen: Seen) -> list[str]:
    """The last state of each thing is its last change; a topic of states that was not read is not judged."""
    last: dict[str, dict[str, Any]] = {stream.name: {} for stream in STATES}
    for changes, state, key_of in (
        (WORKFLOW_CHANGES, WORKFLOW_STATE, lambda one: one.workflow_id),
        (INSTANCE_CHANGES, INSTANCE_STATE, lambda one: f"{one.workflow_id}/{one.instance_id}"),
        (STEP_CHANGES, STEP_STATE, lambda one: f"{one.workflow_id}/{one.instance_id}/{one.step_id}"),
    ):
        for _, change in (row for rows in seen[changes.name].values() for row in rows):
            last[state.name][key_of(change)] = change.sequence
    problems = []
    for stream in STATES:
        if stream.name in seen:
            found = {key: one.sequence for rows in seen[stream.name].values() for key, one in rows}
            wrong = [key for key, number in last[stream.name].items() if found.get(key) != number]
            problems += [f"{stream.name}: expected the last change of {key!r}, but found another" for key in wrong]
            problems += [f"{stream.name}: expected no state of {key!r}" for key in found.keys() - last[stream.name]]
    return problems
