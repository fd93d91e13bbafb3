"""Attempts ask for the permits that they need, wait for them, and return them whatever their end is."""

import json
from typing import Any

import pytest

from kapelle.processors.keys import TAG
from kapelle.processors.runs.permits import PERMITS_MAX
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_EVENTS, RUN_EVENTS, RUN_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Criticality
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.support.trees import foreach, subworkflow, tree
from tests.unit.runs.flows import (
    MINUTE_MS,
    ONCE,
    SPECIFIC,
    I,
    S,
    fail,
    noop,
    passed,
    pause,
    pushed,
    reason,
    started,
    step,
    succeed,
    task,
)

WAITS = S.WAITING_FOR_PERMITS


def limit(engine: Engine, tag: str, most: int | None) -> None:
    """Set the limit of a tag, or remove it."""
    request_id, key = engine.request_id(), TAG + tag
    command = c.RemoveLimit(request_id, AUTHOR) if most is None else c.SetLimit(request_id, AUTHOR, most)
    engine.send(PERMIT_COMMANDS, key, command)


def holders(engine: Engine, limited: str) -> set[str]:
    """The steps that hold a permit, by the events of the limit: `instance/step/attempt`."""
    held: set[str] = set()
    for event in engine.events(PERMIT_EVENTS, limited):
        if isinstance(event, c.PermitGranted):
            held.add(name_of(event.holder))
        elif isinstance(event, c.PermitReturned):
            held.discard(name_of(event.holder))
    return held


def name_of(holder: c.PermitHolder) -> str:
    return f"{holder.key}/{holder.step_id}/{holder.attempt}"


def asked(engine: Engine, limited: str) -> int:
    """How many attempts have asked for a permit."""
    events = engine.events(PERMIT_EVENTS, limited)
    queued = sum(isinstance(event, c.PermitQueued) for event in events)
    return queued + sum(isinstance(event, c.PermitGranted) and not event.has_waited for event in events)


def two(most: int = 1, **more: Any) -> RunHandle:
    """A run of two steps with the tag `gpu`, which is limited."""
    engine = pushed(step("a", tags=["gpu"], **more), step("b", tags=["gpu"], **more))
    limit(engine, "gpu", most)
    return engine.start("flow")


def looped(*steps: Any, **more: Any) -> RunHandle:
    """A run of a loop of two iterations, while the tag `gpu` is limited to one attempt."""
    engine = Engine()
    engine.push(tree(foreach("loop", 2, *steps, **more), workflow_id="flow"))
    limit(engine, "gpu", 1)
    return engine.start("flow")


def test_a_step_waits_while_another_one_holds_the_only_permit_of_its_tag() -> None:
    run = two()

    assert run.steps == {"a": S.STARTING, "b": WAITS}
    assert holders(run.engine, "tag/gpu") == {"flow/1/a/1"}
    assert passed(run, "b")[-1] is WAITS


def test_the_end_of_the_one_starts_the_other() -> None:
    run = two()

    succeed(run, "a")

    assert run.steps == {"a": S.SUCCEEDED, "b": S.STARTING}
    assert holders(run.engine, "tag/gpu") == {"flow/1/b/1"}
    succeed(run, "b")
    assert holders(run.engine, "tag/gpu") == set()


def test_the_parameters_of_a_step_that_has_waited_are_those_that_it_had_before_and_are_noted_once() -> None:
    engine = pushed(step("a", tags=["gpu"]), step("b", tags=["gpu"], at="=System.currentTimeMillis()"))
    limit(engine, "gpu", 1)
    run = engine.start("flow")
    noted = [change.params for change in run.changes("b") if change.params is not None]

    engine.advance(MINUTE_MS)
    succeed(run, "a")

    assert [change.params for change in run.changes("b") if change.params is not None] == noted
    assert json.loads(task(run, "b").task.params) == json.loads(noted[0])


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL, Action.SKIP])
@pytest.mark.parametrize("step_id", ["a", "b"])
def test_a_step_that_a_person_ends_returns_what_it_holds_or_waits_for(action: Action, step_id: str) -> None:
    run = two()

    run.act(step_id, action)

    assert holders(run.engine, "tag/gpu") == ({"flow/1/b/1"} if step_id == "a" else {"flow/1/a/1"})
    run.stop()
    assert holders(run.engine, "tag/gpu") == set()


def test_a_step_that_fails_returns_its_permit_and_asks_again_when_it_is_retried() -> None:
    run = two(retry_policy={"error_retry_limit": 1})

    task(run, "a").fail("no", c.Report.USER_ERROR)

    assert run.steps == {"a": S.USER_FAILED, "b": S.STARTING}
    run.engine.advance(10 * MINUTE_MS)
    assert run.steps == {"a": WAITS, "b": S.STARTING}
    succeed(run, "b", "a")
    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED}
    assert holders(run.engine, "tag/gpu") == set()


def test_a_step_that_times_out_and_one_whose_worker_is_lost_return_their_permits() -> None:
    run = two(timeout="2min", retry_policy=ONCE)

    run.engine.advance(MINUTE_MS)
    task(run, "a").begin()
    run.engine.advance(2 * MINUTE_MS)

    assert run.steps["a"] in (S.TIMED_OUT, S.FATALLY_FAILED)
    assert holders(run.engine, "tag/gpu") == {"flow/1/b/1"}


def test_a_run_that_is_stopped_returns_all_its_permits_and_places() -> None:
    engine = pushed(*(step(f"s{number}", tags=["gpu"]) for number in range(5)))
    limit(engine, "gpu", 2)
    run = engine.start("flow")

    run.stop()

    assert holders(engine, "tag/gpu") == set()
    assert engine.start("flow").steps["s0"] is S.STARTING


def test_a_restarted_step_asks_again() -> None:
    run = two(retry_policy=ONCE)
    fail(run, "a")
    assert holders(run.engine, "tag/gpu") == {"flow/1/b/1"}

    run.restart(SPECIFIC, step_id="a")

    assert run.steps["a"] is WAITS
    succeed(run, "b")
    assert holders(run.engine, "tag/gpu") == {"flow/1/a/2"}


def test_a_lower_limit_stops_nobody_and_admits_nobody_until_there_is_room() -> None:
    engine = pushed(*(step(f"s{number}", tags=["gpu"]) for number in range(4)))
    limit(engine, "gpu", 3)
    run = engine.start("flow")

    limit(engine, "gpu", 1)

    assert [run.steps[f"s{number}"] for number in range(4)] == [S.STARTING, S.STARTING, S.STARTING, WAITS]
    succeed(run, "s0", "s1")
    assert run.steps["s3"] is WAITS
    succeed(run, "s2")
    assert run.steps["s3"] is S.STARTING


@pytest.mark.parametrize("most", [2, None])
def test_a_higher_limit_and_no_limit_admit_at_once(most: int | None) -> None:
    run = two()

    limit(run.engine, "gpu", most)

    assert run.steps == {"a": S.STARTING, "b": S.STARTING}


def test_a_limit_of_zero_admits_nobody() -> None:
    assert two(0).steps == {"a": WAITS, "b": WAITS}


def test_a_step_asks_for_its_permits_in_the_order_of_their_keys_and_holds_the_earlier_ones() -> None:
    engine = pushed(step("a", tags=["z", "m"]), step("b", tags=["m", "a", "z"]))
    for tag in ("a", "m", "z"):
        limit(engine, tag, 1)
    run = engine.start("flow")

    assert run.steps == {"a": S.STARTING, "b": WAITS}
    assert holders(engine, "tag/a") == {"flow/1/b/1"}
    assert holders(engine, "tag/m") == {"flow/1/a/1"}
    assert asked(engine, "tag/z") == 1

    succeed(run, "a")

    assert run.steps["b"] is S.STARTING
    assert run.changes("b")[0].permits == ("tag/a", "tag/m", "tag/z")


def test_what_waits_for_a_limit_of_its_own_workflow_holds_no_permit_that_others_need() -> None:
    engine = pushed(step("a", tags=["gpu"]))
    engine.send(
        WORKFLOW_COMMANDS, "flow", c.ChangeProperties(engine.request_id(), AUTHOR, json.dumps({"step_concurrency": 1}))
    )
    engine.push(tree(step("b", tags=["gpu"]), workflow_id="other"))
    limit(engine, "gpu", 2)

    first, second, other = engine.start("flow"), engine.start("flow"), engine.start("other")

    assert (first.steps["a"], second.steps["a"], other.steps["b"]) == (S.STARTING, WAITS, S.STARTING)
    assert holders(engine, "tag/gpu") == {"flow/1/a/1", "other/1/b/1"}


@pytest.mark.parametrize("same_cycle", [True, False])
def test_all_steps_of_a_tree_ask_in_one_order_with_the_narrow_permits_first(same_cycle: bool) -> None:
    engine = Engine(same_cycle=same_cycle)
    child = tree(step("a", tags=["gpu"]), workflow_id="child", instance_step_concurrency=1)
    child["properties"]["step_concurrency"] = 1
    engine.push(child)
    calls = {"bee": "child", "zoo": "bee", "ant": "zoo"}  # the root is `ant`
    for name, called in calls.items():
        steps = step(f"{name}-work"), subworkflow("call", called)
        engine.push(tree(*steps, workflow_id=name, instance_step_concurrency=9))
    engine.start("ant")

    (of_child,), (of_zoo,), (of_bee,) = (engine.runs(name) for name in ("child", "zoo", "bee"))

    trees = "tree/bee/1", "tree/child/1", "tree/zoo/1", "tree/ant/1"
    assert of_child.changes("a")[0].permits == (*trees, "workflow/child", "tag/gpu")
    assert of_bee.changes("bee-work")[0].permits == ("tree/bee/1", "tree/zoo/1", "tree/ant/1")
    assert of_zoo.changes("zoo-work")[0].permits == ("tree/zoo/1", "tree/ant/1")


def test_tags_that_nobody_limits_are_asked_for_once_on_a_partition() -> None:
    engine = pushed(step("a", tags=["free"]))
    for _ in range(3):
        succeed(engine.start("flow"), "a")

    assert asked(engine, "tag/free") == 1
    run = engine.start("flow")
    assert run.steps["a"] is S.STARTING
    assert run.changes("a")[0].permits == ()


def test_a_partition_learns_of_a_limit_that_is_set_later_and_of_its_end() -> None:
    engine = pushed(step("a", tags=["gpu"]))
    first, second = engine.start("flow"), engine.start("flow")

    limit(engine, "gpu", 1)

    # The first attempt has asked, because the partition did not know the tag. The second one is not counted.
    third = engine.start("flow")
    assert [run.steps["a"] for run in (first, second, third)] == [S.STARTING, S.STARTING, WAITS]
    assert holders(engine, "tag/gpu") == {"flow/1/a/1"}
    limit(engine, "gpu", None)
    before = asked(engine, "tag/gpu")
    assert third.steps["a"] is S.STARTING
    assert engine.start("flow").steps["a"] is S.STARTING
    assert asked(engine, "tag/gpu") == before


def test_the_tags_of_the_workflow_count_for_all_its_steps() -> None:
    engine = pushed(step("a"), step("b", tags=["own"]), tags=["team"])
    limit(engine, "team", 1)

    assert engine.start("flow").steps == {"a": S.STARTING, "b": WAITS}


def test_a_tag_may_refer_to_parameters() -> None:
    engine = pushed(step("a", tags=["db-${region}"]), step("b", tags=["db-eu"]), params={"region": "eu"})
    limit(engine, "db-eu", 1)

    assert engine.start("flow").steps == {"a": S.STARTING, "b": WAITS}


def test_a_tag_that_becomes_too_long_fails_the_step_with_the_reason() -> None:
    run = started(step("a", tags=["${x}"]), params={"x": "y" * 300})

    assert run.steps["a"] is S.INTERNALLY_FAILED
    assert reason(run, "a").startswith("Expected the tag '${x}' to become 1 to 256 characters, but found 'yyy")


def test_a_step_with_too_many_tags_fails_with_the_reason() -> None:
    run = started(step("a", tags=[f"t{number}" for number in range(PERMITS_MAX + 1)]))

    assert run.steps["a"] is S.INTERNALLY_FAILED
    assert reason(run, "a") == "Expected step 'a' to need at most 100 permits, but it needs 101"


def test_instance_step_concurrency_limits_an_instance_with_its_iterations_and_no_other_instance() -> None:
    engine = Engine()
    steps = foreach("loop", 3, step("inner")), step("beside")
    engine.push(tree(*steps, workflow_id="flow", instance_step_concurrency=2))
    engine.send(
        WORKFLOW_COMMANDS, "flow", c.ChangeProperties(engine.request_id(), AUTHOR, '{"run_strategy": "PARALLEL"}')
    )
    first, second = engine.start("flow"), engine.start("flow")

    done = 0
    for run in (first, second):
        assert len(holders(engine, f"tree/{run.key}")) == 2
    while done < len(engine.tasks()):
        engine.tasks()[done].succeed()
        done += 1
        assert len(engine.tasks()) - done <= 4
    assert (first.status, second.status, done) == (I.SUCCEEDED, I.SUCCEEDED, 8)
    assert holders(engine, f"tree/{first.key}") == set()


def test_step_concurrency_limits_all_instances_of_a_workflow_and_a_change_counts_at_once() -> None:
    engine = pushed(step("a"))
    engine.send(
        WORKFLOW_COMMANDS, "flow", c.ChangeProperties(engine.request_id(), AUTHOR, json.dumps({"step_concurrency": 1}))
    )
    first, second, third = (engine.start("flow") for _ in range(3))
    assert [run.steps["a"] for run in (first, second, third)] == [S.STARTING, WAITS, WAITS]

    engine.send(
        WORKFLOW_COMMANDS, "flow", c.ChangeProperties(engine.request_id(), AUTHOR, json.dumps({"step_concurrency": 2}))
    )

    assert [run.steps["a"] for run in (first, second, third)] == [S.STARTING, S.STARTING, WAITS]
    engine.send(
        WORKFLOW_COMMANDS,
        "flow",
        c.ChangeProperties(engine.request_id(), AUTHOR, json.dumps({"reset_step_concurrency": True})),
    )
    assert third.steps["a"] is S.STARTING


def test_composite_steps_need_no_permit_so_that_a_loop_and_its_steps_may_have_the_same_tag() -> None:
    run = looped(step("inner", tags=["gpu"]), tags=["gpu"])

    assert run.steps["loop"] is S.RUNNING
    assert len(holders(run.engine, "tag/gpu")) == 1
    assert len(run.engine.tasks()) == 1


def test_the_tags_of_a_composite_step_count_for_the_steps_in_it() -> None:
    run = looped(step("inner"), tags=["gpu"])

    assert run.steps["loop"] is S.RUNNING
    assert len(holders(run.engine, "tag/gpu")) == 1
    assert len(run.engine.tasks()) == 1


def test_the_criticality_of_a_workflow_counts_for_its_steps_and_for_those_of_its_loops() -> None:
    engine = Engine()
    steps = foreach("loop", 1, step("inner", tags=["gpu"])), step("beside", tags=["gpu"])
    engine.push(tree(*steps, workflow_id="flow", criticality="HIGH"))
    limit(engine, "gpu", 5)
    engine.start("flow")

    granted = [event for event in engine.events(PERMIT_EVENTS, "tag/gpu") if isinstance(event, c.PermitGranted)]
    assert [(event.criticality, event.workflow_id) for event in granted] == [(Criticality.HIGH, "flow")] * 2
    assert {task.task.criticality for task in engine.tasks()} == {Criticality.HIGH}


def test_noops_and_sleeps_need_permits_like_all_leaf_steps() -> None:
    engine = pushed(pause("a", tags=["gpu"]), noop("b", tags=["gpu"]))
    limit(engine, "gpu", 1)
    run = engine.start("flow")
    assert run.steps == {"a": S.RUNNING, "b": WAITS}

    engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED}
    assert holders(engine, "tag/gpu") == set()


def test_a_permit_that_comes_after_the_end_of_its_attempt_starts_nothing() -> None:
    run = two()
    waiting = run.changes("b")[-1]
    run.act("b", Action.STOP)

    holder = c.PermitHolder(key=run.key, run_id=1, step_id="b", attempt=waiting.attempt, iteration=waiting.iteration)
    grant = c.GrantPermit(holder=holder, limited="tag/gpu", is_limited=True, sequence=1)
    run.engine.send(RUN_INTERNAL, run.key, grant)

    assert run.steps["b"] is S.STOPPED
    assert not any(
        isinstance(event, c.PermitReceived) for event in run.events() if getattr(event, "step_id", "") == "b"
    )


def test_the_history_of_a_run_says_what_an_attempt_waits_for() -> None:
    run = two()
    succeed(run, "a")

    texts = [entry.body.message for entry in run.timeline() if entry.step_id == "b" and entry.body.message]
    assert texts[:2] == ["The step needs a permit of tag/gpu", "The step received a permit of tag/gpu"]


def test_learned_limits_are_in_the_history_of_runs() -> None:
    engine = pushed(step("a", tags=["gpu"]))
    engine.start("flow")
    limit(engine, "gpu", 1)

    learned = [event for event in engine.events(RUN_EVENTS) if isinstance(event, c.LimitLearned)]
    assert [(event.is_limited, event.sequence) for event in learned] == [(True, 0), (False, 1), (True, 2)]
