"""The timer with which a composite step tells or launches its children dies with the attempt that has set it."""

from kapelle.processors.messages import TimerDue
from kapelle.processors.parents import child_end
from kapelle.processors.runs import runs
from kapelle.processors.runs.composites.applying import children_of
from kapelle.processors.runs.composites.step_endings import LOOKED_AT_MAX, TOLD_MAX
from kapelle.processors.runs.deciding import timer_due
from kapelle.processors.runs.processor import RunDraft
from kapelle.processors.wiring import RUN_COMMANDS, RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.unit.composites.trees import child, fan, foreach, push, row, slow
from tests.unit.runs.flows import INCOMPLETE, I, S, noop, step

MANY = TOLD_MAX + 50


def stop(run: RunHandle) -> c.TerminateRun:
    assert run.row is not None
    return c.TerminateRun(run.engine.request_id(), AUTHOR, run.row.run_id, Action.STOP, "enough")


def end_of(run: RunHandle, number: int, status: I) -> c.RecordChildEnd:
    """What an iteration answers."""
    below = child(run, "top", number).row
    assert below is not None
    assert below.parent is not None
    return child_end(below.parent, below.run_id, status, "")


def due_at_ms(run: RunHandle) -> int | None:
    """When the timer of the loop fires."""
    found: int | None = run.engine.state("runs", run.key).timers.due_at_ms(
        run.key, children_of("top", fan(run, "top"), run.key)
    )
    return found


def goes_on(engine: Engine) -> bool:
    return engine.start("other").status is I.SUCCEEDED


def test_a_stopped_loop_whose_iterations_all_end_before_the_rest_is_told_ends_once() -> None:
    engine = slow()
    push(engine, "other", noop("a"))
    push(engine, "flow", foreach("top", step("leaf"), i=list(range(MANY))))
    run = engine.start("flow")
    ends = [end_of(run, number, I.STOPPED if number <= TOLD_MAX else I.SUCCEEDED) for number in range(1, MANY + 1)]

    for message in (stop(run), *ends):
        engine.runtime.publish(RUN_INTERNAL, run.key, message)
    engine.runtime.step_until_idle()

    assert (run.status, run.steps["top"]) == (I.STOPPED, S.STOPPED)
    assert due_at_ms(run) is None
    assert fan(run, "top").due_at_ms is None
    assert goes_on(engine)


def test_a_resumed_loop_that_is_stopped_while_it_looks_for_iterations_to_run_again_ends_once() -> None:
    engine = slow()
    push(engine, "other", noop("a"))
    count = LOOKED_AT_MAX * 2 + 50
    leaf = [noop("first", {"leaf": f"i >= {count - 1}"}), step("leaf")]
    push(engine, "flow", foreach("top", *leaf, i=list(range(count))))
    run = engine.start("flow")
    engine.task(child(run, "top", count), "leaf").fail("broken", c.Report.FATAL_ERROR)
    engine.runtime.publish(RUN_COMMANDS, run.key, c.RestartRun(engine.request_id(), AUTHOR, INCOMPLETE))
    while fan(run, "top").fan_run < 2:
        engine.runtime.step()
    before = fan(run, "top")

    engine.send(RUN_INTERNAL, run.key, stop(run))

    assert (before.running, before.due_at_ms) == (0, engine.clock.now_ms)
    assert (run.status, run.steps["top"]) == (I.STOPPED, S.STOPPED)
    assert due_at_ms(run) is None
    assert goes_on(engine)


def test_a_timer_that_fires_after_its_step_has_ended_changes_nothing() -> None:
    engine = slow()
    push(engine, "flow", foreach("top", step("leaf"), i=[1, 2]))
    run = engine.start("flow")
    name = children_of("top", fan(run, "top"), run.key)
    run.stop()
    assert row(run, "top").status is I.STOPPED
    draft = RunDraft(runs, run.key, engine.state("runs", run.key))

    timer_due(TimerDue(name, engine.clock.now_ms), draft, engine.clock.now_ms)

    assert draft.effects == []
