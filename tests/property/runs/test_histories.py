"""Whatever workers, people and time do to a run of any shape, the laws of runs hold after every command."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from tests.property.runs.flows import name, workflows
from tests.property.runs.worlds import changes_max, check, finish

NUMBERS = st.integers(0, 11)
REPORTS = st.sampled_from([Report.SUCCEEDED] * 4 + [one for one in Report if one is not Report.OTHER])
WORKERS = st.sampled_from(["one", "one", "two"])
ANSWERS = st.fixed_dictionaries({"flag": st.booleans(), "z": st.integers(0, 3)})
TIMES_MS = st.sampled_from([0, 1_000, 30_000, 30_000, 60_000, 600_000, 86_400_000])
COMMANDS = st.one_of(
    st.tuples(st.just("report"), NUMBERS, REPORTS, WORKERS, ANSWERS),
    st.tuples(st.just("report"), NUMBERS, REPORTS, WORKERS, ANSWERS),
    st.tuples(st.just("report"), NUMBERS, st.just(Report.SUCCEEDED), st.just("one"), ANSWERS),
    st.tuples(st.just("advance"), TIMES_MS),
    st.tuples(st.just("act"), NUMBERS, st.sampled_from([Action.STOP, Action.KILL, Action.SKIP])),
    st.tuples(st.just("stop"), st.sampled_from([Action.STOP, Action.KILL])),
    st.tuples(st.just("restart"), NUMBERS, st.sampled_from(list(RestartPolicy))),
    st.tuples(st.just("again"), NUMBERS),
)


def obey(engine: Engine, run: RunHandle, command: tuple[Any, ...]) -> None:
    """Do to the run what the example says. Reports may be late, doubled, or of a worker that does not have the task."""
    match command:
        case ("report", number, report, worker, answers):
            tasks = engine.tasks(run)
            if tasks:
                outputs = {
                    "flag": {"type": "BOOLEAN", "value": answers["flag"]},
                    "z": {"type": "LONG", "value": answers["z"]},
                }
                # Most words are about the latest tasks, as most words are.
                tasks[-1 - number % min(len(tasks), 4)].say(report, worker=worker, outputs=outputs)
        case ("advance", ms):
            engine.advance(ms)
        case ("act", number, action):
            run.act(name(number % 6), action)
        case ("stop", action):
            run.stop(action)
        case ("restart", number, policy):
            run.restart(policy, step_id=name(number) if number < 6 else None)
        case ("again", number):
            ask_again(engine, run, number)


def ask_again(engine: Engine, run: RunHandle, number: int) -> None:
    """A request that was carried out comes a second time: it is answered, and nothing else comes of it."""
    asked = [one for one in engine.events(RUN_COMMANDS, run.key) if isinstance(one, c.ActOnStep | c.RestartRun)]
    done = {one.request_id for one in run.events() if isinstance(one, c.ActionTaken)}
    done |= {one.request_id for one in engine.events(WORKFLOW_EVENTS) if isinstance(one, c.InstanceCreated)}
    if repeated := [one for one in asked if one.request_id in done]:
        before = len(engine.events(WORKFLOW_EVENTS)) + len(run.events())
        engine.send(RUN_COMMANDS, run.key, repeated[number % len(repeated)])
        after = [*engine.events(WORKFLOW_EVENTS), *run.events()]
        assert len(after) == before + 1
        assert isinstance(engine.events(WORKFLOW_EVENTS)[-1], c.StartDuplicated) or isinstance(
            run.events()[-1], c.CommandSettled
        )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(workflow=workflows(), commands=st.lists(COMMANDS, max_size=20), full_after=st.sampled_from([1, 2, 5, 250]))
def test_the_laws_of_runs_hold_after_every_command(
    workflow: dict[str, Any], commands: list[tuple[Any, ...]], full_after: int
) -> None:
    engine = Engine()
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow})
    assert engine.refusals() == []

    with changes_max(full_after):
        run = engine.start("flow")
        check(engine, run)
        for command in commands:
            obey(engine, run, command)
            check(engine, run)
        finish(engine, run)

    check(engine, run)
    assert run.status is not InstanceStatus.IN_PROGRESS
    assert engine.runtime.next_due_at_ms() is None
