"""What publishers make of our events: which records, under which keys, with which numbers, and from where."""

from typing import Any

import msgspec

from kapelle.processors.publisher import PUBLISHERS
from kapelle.processors.publisher.streams import (
    INLINE_CHANGES,
    INSTANCE_CHANGES,
    INSTANCE_STATE,
    SIGNAL_VERDICTS,
    STEP_CHANGES,
    STEP_STATE,
    WORKFLOW_CHANGES,
    WORKFLOW_STATE,
)
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_INTERNAL, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import (
    Action,
    InitiatorType,
    InstanceStatus,
    RunStrategyRule,
    StepStatus,
    Verdict,
    WorkflowChangeType,
)
from kapelle.testing.engine import Engine

JOINED = {"definitions": {name: {"join_keys": ["day"]} for name in ("left", "right")}}


def workflow(step_type: str = "NoOp", **more: Any) -> dict[str, Any]:
    steps = [{"step": {"id": "load", "type": step_type}}]
    return {"properties": {"owner": "ann"}, "workflow": {"id": "etl", "steps": steps, **more}}


def announce(engine: Engine, name: str, signal_id: str, **params: Any) -> None:
    told = msgspec.json.encode(params).decode()
    at_ms = engine.clock()
    engine.send(SIGNAL_INTERNAL, name, c.AnnounceSignal(name, signal_id, told, happened_at_ms=at_ms))


def published(engine: Engine, stream: Stream, key: str | None = None) -> list[Any]:
    """The records of a public stream, whose contract each test knows."""
    return list(engine.events(stream, key))


def test_a_push_is_published_with_what_the_workflow_is_after_each_of_its_changes() -> None:
    engine = Engine()

    engine.push(workflow())

    changes = published(engine, WORKFLOW_CHANGES, "etl")
    assert [(one.change, one.sequence) for one in changes] == [
        (WorkflowChangeType.VERSION_PUSHED, 1),
        (WorkflowChangeType.PROPERTIES_CHANGED, 2),
        (WorkflowChangeType.VERSION_ACTIVATED, 3),
    ]
    assert (changes[0].version, changes[0].active_version) == (1, None)
    assert "load" in changes[0].definition
    last = changes[-1]
    assert (last.owner, last.run_strategy, last.latest_version, last.active_version, last.definition) == (
        "ann",
        RunStrategyRule.SEQUENTIAL,
        1,
        1,
        None,
    )


def test_properties_are_published_by_their_types() -> None:
    engine = Engine()
    strategy = {"rule": "PARALLEL", "workflow_concurrency": 7}
    wanted = {"owner": "bob", "run_strategy": strategy, "step_concurrency": 3, "description": "d", "tags": ["x", "y"]}

    engine.push({**workflow(), "properties": wanted})

    last = published(engine, WORKFLOW_CHANGES, "etl")[-1]
    assert (last.run_strategy, last.workflow_concurrency, last.step_concurrency) == (RunStrategyRule.PARALLEL, 7, 3)
    assert (last.owner, last.description, last.tags) == ("bob", "d", ("x", "y"))


def test_deactivation_and_deletion_are_published() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.send(WORKFLOW_COMMANDS, "etl", c.DeactivateWorkflow("off", "ann"))
    engine.send(WORKFLOW_COMMANDS, "etl", c.DeleteWorkflow("gone", "ann"))

    off, gone = published(engine, WORKFLOW_CHANGES, "etl")[-2:]
    assert (off.change, off.version, off.active_version) == (WorkflowChangeType.DEACTIVATED, 1, None)
    assert (gone.change, gone.is_deleted, gone.latest_version) == (WorkflowChangeType.DELETED, True, 0)
    assert published(engine, WORKFLOW_STATE, "etl")[-1] == gone


def test_the_state_of_a_workflow_is_its_last_change_without_the_definition() -> None:
    engine = Engine()

    engine.push(workflow())

    states = published(engine, WORKFLOW_STATE, "etl")
    assert states[-1] == published(engine, WORKFLOW_CHANGES, "etl")[-1]
    assert [one.definition for one in states] == [None] * len(states)


def test_an_instance_is_published_from_its_creation_to_its_end() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.start("etl", request_id="mine")

    created, started, ended = published(engine, INSTANCE_CHANGES, "etl")
    assert [one.status for one in (created, started, ended)] == ["CREATED", "IN_PROGRESS", "SUCCEEDED"]
    assert [one.previous_status for one in (created, started, ended)] == [None, "CREATED", "IN_PROGRESS"]
    assert [one.sequence for one in (created, started, ended)] == [1, 2, 3]
    assert (ended.version, ended.initiator, ended.author, ended.request_id) == (
        1,
        InitiatorType.MANUAL,
        "tester",
        "mine",
    )
    assert ended.correlation_id == created.correlation_id != ""
    assert (created.started_at_ms, created.ended_at_ms) == (None, None)
    assert ended.created_at_ms <= ended.started_at_ms <= ended.ended_at_ms == ended.at_ms
    assert published(engine, INSTANCE_STATE, "etl/1")[-1] == ended


def test_instances_of_a_workflow_are_numbered_together() -> None:
    engine = Engine()
    engine.push(workflow("Work"))

    for _ in range(3):
        engine.start("etl")

    changes = published(engine, INSTANCE_CHANGES, "etl")
    assert [one.sequence for one in changes] == list(range(1, len(changes) + 1))
    assert [(one.instance_id, one.status) for one in changes] == [
        (1, InstanceStatus.CREATED),
        (1, InstanceStatus.IN_PROGRESS),
        (2, InstanceStatus.CREATED),
        (3, InstanceStatus.CREATED),
    ]


def test_an_instance_that_is_stopped_in_the_queue_was_never_in_progress() -> None:
    engine = Engine()
    engine.push(workflow("Work"))
    engine.start("etl")

    engine.start("etl").stop(Action.STOP, "not needed")

    last = published(engine, INSTANCE_STATE, "etl/2")[-1]
    assert (last.status, last.previous_status, last.started_at_ms) == (InstanceStatus.STOPPED, "CREATED", None)
    assert last.reason == "not needed"


def test_a_restart_is_published_as_another_run_of_the_instance() -> None:
    engine = Engine()
    engine.push(workflow())
    run = engine.start("etl")

    run.restart(c.RestartPolicy.RESTART_FROM_BEGINNING)

    changes = published(engine, INSTANCE_CHANGES, "etl")
    assert [(one.run_id, one.status) for one in changes[3:]] == [
        (2, InstanceStatus.CREATED),
        (2, InstanceStatus.IN_PROGRESS),
        (2, InstanceStatus.SUCCEEDED),
    ]


def test_only_runs_that_have_not_ended_are_remembered() -> None:
    engine = Engine()
    engine.push(workflow("Work"))
    run = engine.start("etl")
    assert len(list(engine.state("publisher.instances", "etl").live.prefix())) == 1

    engine.task(run, "load").succeed()

    assert list(engine.state("publisher.instances", "etl").live.prefix()) == []


def test_what_a_step_passes_at_once_is_one_record() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.start("etl")

    (change,) = published(engine, STEP_CHANGES, "etl/1")
    assert (change.workflow_id, change.instance_id, change.step_id) == ("etl", 1, "load")
    assert change.status is StepStatus.SUCCEEDED
    assert change.passed[0] is StepStatus.CREATED
    assert StepStatus.SUCCEEDED not in change.passed
    assert published(engine, STEP_STATE, "etl/1/load") == [change]


def test_steps_of_an_instance_are_numbered_together() -> None:
    engine = Engine()
    steps = [{"step": {"id": name, "type": "Work"}} for name in ("one", "two")]
    engine.push({"properties": {"owner": "ann"}, "workflow": {"id": "etl", "steps": steps}})
    run = engine.start("etl")

    engine.task(run, "two").succeed()
    engine.task(run, "one").succeed()

    changes = published(engine, STEP_CHANGES, "etl/1")
    assert [one.sequence for one in changes] == list(range(1, len(changes) + 1))
    assert {one.step_id for one in changes} == {"one", "two"}
    assert published(engine, STEP_STATE, "etl/1/one")[-1].status is StepStatus.SUCCEEDED


def test_a_change_of_a_step_says_in_each_field_what_its_event_says() -> None:
    engine = Engine()
    again = {"id": "load", "type": "Work", "retry_policy": {"error_retry_limit": 1}}
    engine.push({"properties": {"owner": "ann"}, "workflow": {"id": "etl", "steps": [{"step": again}]}})
    run = engine.start("etl")
    engine.task(run, "load").begin()
    engine.task(run, "load").fail("no such table")
    engine.advance(3_600_000)
    engine.task(run, "load").succeed()

    events = [event for event in published(engine, RUN_EVENTS, "etl/1") if isinstance(event, c.StepChanged)]
    changes = published(engine, STEP_CHANGES, "etl/1")
    same = ("run_id", "step_id", "attempt", "iteration", "loop", "reason", "worker", "at_ms")
    assert [[getattr(one, name) for name in same] for one in changes] == [
        [getattr(one, name) for name in same] for one in events
    ]
    assert [(*one.passed, one.status) for one in changes] == [one.statuses for one in events]
    assert {one.attempt for one in changes} == {1, 2}
    assert any("no such table" in one.reason for one in changes)
    assert any(one.worker for one in changes)


def test_a_change_of_an_instance_says_in_each_field_what_its_creation_said() -> None:
    engine = Engine()
    engine.push(workflow())
    engine.start("etl")
    engine.start("etl", request_id="mine")

    created = next(
        one
        for one in published(engine, WORKFLOW_EVENTS, "etl")
        if isinstance(one, c.InstanceCreated) and one.request_id == "mine"
    )
    changes = [one for one in published(engine, INSTANCE_CHANGES, "etl") if one.instance_id == 2]
    same = ("workflow_id", "instance_id", "run_id", "version", "author", "request_id", "correlation_id")
    assert len(changes) == 3
    for change in changes:
        assert [getattr(change, name) for name in same] == [getattr(created, name) for name in same]
        assert change.created_at_ms == created.at_ms


def test_a_record_tells_where_the_event_stands_that_it_was_made_from() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.start("etl")

    for change in published(engine, INSTANCE_CHANGES, "etl"):
        assert change.source_topic == "test.workflows.events"
        _, source = list(engine.history(WORKFLOW_EVENTS, change.source_partition))[change.source_offset]
        assert (source.instance_id, source.at_ms) == (change.instance_id, change.at_ms)


def test_a_signal_is_judged_once_and_its_repetition_too() -> None:
    engine = Engine()

    announce(engine, "day-done", "a", day="monday", count=3)
    announce(engine, "day-done", "a", day="monday", count=3)

    first, second = published(engine, SIGNAL_VERDICTS, "day-done")
    assert (first.verdict, first.sequence, first.signal_sequence) == (Verdict.ACCEPTED, 1, 1)
    assert (first.strings, first.longs) == ({"day": "monday"}, {"count": 3})
    assert (second.verdict, second.sequence, second.signal_sequence) == (Verdict.DUPLICATE, 2, 1)


def test_a_firing_is_a_verdict_on_each_of_its_signals() -> None:
    engine = Engine()
    engine.push(workflow(signal_triggers=[JOINED]))

    announce(engine, "left", "a", day="monday")
    announce(engine, "right", "b", day="monday")

    kept, *fired = [one for one in published(engine, SIGNAL_VERDICTS) if one.trigger_id is not None]
    assert (kept.verdict, kept.signal_name, kept.workflow_id) == (Verdict.KEPT, "left", "etl")
    assert {(one.verdict, one.signal_name) for one in fired} == {(Verdict.FIRED, "left"), (Verdict.FIRED, "right")}
    assert [one.sequence for one in (kept, *fired)] == [1, 2, 3]
    assert {one.request_id for one in fired} == {published(engine, INSTANCE_CHANGES, "etl")[0].request_id}


def test_public_records_are_whole_cloud_events() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.start("etl")

    (record, *_) = engine.runtime.read(INSTANCE_CHANGES, 0, 0, 10)
    headers = dict(record.headers or ())
    assert headers["ce_specversion"] == b"1.0"
    assert headers["ce_type"] == b"InstanceStatusChange"
    assert headers["ce_source"] == b"/test/publisher.instances"
    assert headers["ce_id"] == b"publisher.instances/test.workflows.events-0-4#1"


def test_every_public_stream_has_one_type_of_record() -> None:
    written = [stream for publisher in PUBLISHERS for stream in (publisher.events, *publisher.outputs)]
    streams = [stream for stream in written if stream.public]

    assert [len(stream.contracts) for stream in streams] == [1] * 7
    assert [stream for stream in written if not stream.public] == [INLINE_CHANGES]


def test_of_several_states_in_one_cycle_only_the_last_is_sent() -> None:
    engine = Engine()
    engine.push(workflow())

    engine.start("etl")

    assert [one.status for one in published(engine, INSTANCE_STATE, "etl/1")] == [InstanceStatus.SUCCEEDED]
