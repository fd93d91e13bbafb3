"""Whatever happens to instances: public records have every number once, and are what the history says, in its order."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.publisher.streams import INSTANCE_CHANGES, INSTANCE_STATE, STEP_CHANGES, STEP_STATE, step_key
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from tests.proof.publishing import publishing_violations
from tests.property.signals.replaying import differing
from tests.support.trees import ROOT, foreach, rounds, subworkflow, task, tree

STRATEGIES = st.sampled_from(["SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "STRICT_SEQUENTIAL"])
NUMBERS = st.integers(0, 5)
COMMANDS = st.one_of(
    st.tuples(st.just("start")),
    st.tuples(st.just("start")),
    st.tuples(st.just("report"), NUMBERS, st.sampled_from([Report.SUCCEEDED, Report.FATAL_ERROR, Report.STARTED])),
    st.tuples(st.just("stop"), NUMBERS, st.sampled_from([Action.STOP, Action.KILL])),
    st.tuples(st.just("restart"), NUMBERS),
    st.tuples(st.just("advance"), st.sampled_from([1_000, 60_000, 600_000])),
)
WORKFLOWS = ("one", "two", ROOT)


def obey(engine: Engine, runs: list[RunHandle], command: tuple[Any, ...], workflow_id: str) -> None:
    """Do what the example says, if there is anything to do it to."""
    match command:
        case ("start",):
            runs.append(engine.start(workflow_id))
        case ("report", number, report) if engine.tasks():
            tasks = engine.tasks()
            tasks[-1 - number % len(tasks)].say(report)
        case ("stop", number, action) if runs:
            runs[number % len(runs)].stop(action)
        case ("restart", number) if runs:
            runs[number % len(runs)].restart(RestartPolicy.RESTART_FROM_BEGINNING)
        case ("advance", ms):
            engine.advance(ms)


def keyed(engine: Engine, stream: Stream) -> dict[str, list[Any]]:
    """The records of a stream by their keys, in their order."""
    found: dict[str, list[Any]] = {}
    for partition in range(engine.topology.partitions(stream)):
        for key, value in engine.history(stream, partition):
            found.setdefault(key, []).append(value)
    return found


def expected_statuses(engine: Engine, workflow_id: str) -> list[tuple[int, int, InstanceStatus]]:
    """The statuses of instances as the history of their workflow tells them."""
    found: list[tuple[int, int, InstanceStatus]] = []
    for event in engine.events(WORKFLOW_EVENTS, workflow_id):
        match event:
            case c.InstanceCreated() | c.InstanceEnded():
                found.append((event.instance_id, event.run_id, event.status))
            case c.InstanceLaunched():
                found.append((event.instance_id, event.run_id, InstanceStatus.IN_PROGRESS))
    return found


def check(engine: Engine) -> None:
    assert differing(engine) == []
    streams = [one for one in engine.topology.streams.values() if one.name.endswith(".events") or one.public]
    partitions = range(engine.topology.partitions_default)
    assert (
        publishing_violations({one.name: {n: list(engine.history(one, n)) for n in partitions} for one in streams})
        == []
    )
    for workflow_id in WORKFLOWS:
        changes = keyed(engine, INSTANCE_CHANGES).get(workflow_id, [])
        assert [one.sequence for one in changes] == list(range(1, len(changes) + 1))
        expected = expected_statuses(engine, workflow_id)
        assert [(one.instance_id, one.run_id, one.status) for one in changes] == expected
        states = keyed(engine, INSTANCE_STATE)
        last = {run_key(workflow_id, one.instance_id): one for one in changes}
        assert {key: states[key][-1] for key in last} == last
    steps = keyed(engine, STEP_CHANGES)
    for key, events in keyed(engine, RUN_EVENTS).items():
        changed = [event for event in events if isinstance(event, c.StepChanged)]
        found = steps.get(key, [])
        assert [one.sequence for one in found] == list(range(1, len(changed) + 1))
        assert [(*one.passed, one.status) for one in found] == [event.statuses for event in changed]
        for one in found:
            assert keyed(engine, STEP_STATE)[step_key(key, one.step_id)] != []


@settings(max_examples=60, deadline=None)
@given(
    strategy=STRATEGIES,
    partitions=st.sampled_from([1, 3]),
    commands=st.lists(st.tuples(COMMANDS, st.sampled_from(WORKFLOWS)), max_size=15),
)
def test_public_records_are_numbered_without_a_gap_and_say_what_history_says(
    strategy: str, partitions: int, commands: list[tuple[tuple[Any, ...], str]]
) -> None:
    engine = Engine(partitions=partitions)
    for workflow_id in ("one", "two"):
        steps = [{"step": {"id": "a", "type": "NoOp"}}, {"step": {"id": "b", "type": "Work"}}]
        made = {"id": workflow_id, "steps": steps}
        engine.push({"properties": {"owner": "ann", "run_strategy": strategy}, "workflow": made})

    whole = tree(foreach("loop", 3, task("work"), concurrency=2), rounds("again", 2), subworkflow("call", "one"))
    engine.push(whole | {"properties": {"owner": "ann", "run_strategy": strategy}})

    runs: list[RunHandle] = []
    for command, workflow_id in commands:
        obey(engine, runs, command, workflow_id)

    check(engine)
