"""A step waits until the signals are there that it depends on, and has them from then on."""

from typing import Any

import pytest

from kapelle.processors.params.stored import typed
from kapelle.processors.signals import search
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Report, RestartPolicy, StepStatus
from kapelle.testing.engine import Engine, RunHandle
from tests.property.signals.replaying import differing
from tests.unit.signals.announcing import FLOW, Json, armed, say, told
from tests.unit.signals.world import World

WAITING, STARTING = StepStatus.WAITING_FOR_SIGNALS, StepStatus.STARTING
TYPES = {str: "STRING", int: "LONG", list: "LONG_ARRAY"}


def dependency(name: str, *, match: str = "any", **values: Any) -> Json:
    """A dependency: `n=(">", 1)`, `n=1` for an equal value, text after `=` for an expression."""
    pairs = {key: value if isinstance(value, tuple) else ("=", value) for key, value in values.items()}
    params = {key: {"operator": how, "param": _param(value)} for key, (how, value) in pairs.items()}
    return {"name": name, "match_params": params, "match": match}


def _param(value: Any) -> Json:
    if isinstance(value, str) and value.startswith("="):
        return {"type": "LONG", "expression": value[1:]}
    return {"type": TYPES[type(value)], "value": value}


def waiting(*dependencies: Json, step_id: str = "load", **more: Any) -> Json:
    """A step of a worker that waits for signals."""
    return {"step": {"id": step_id, "type": "shell", "signal_dependencies": list(dependencies), **more}}


def begun(*steps: Json, engine: Engine | None = None, **workflow: Any) -> RunHandle:
    """A run of a workflow of these steps."""
    engine = engine or armed(steps=list(steps), **workflow)
    return engine.start(FLOW)


def used(run: RunHandle) -> list[tuple[str, int, int]]:
    """Which signals the steps of a run were given: step, dependency, number."""
    return [(one.step_id, one.index, one.sequence) for one in run.events() if isinstance(one, c.DependencyMatched)]


def test_a_signal_of_the_past_will_do() -> None:
    engine = armed(steps=[waiting(dependency("ready"))])
    say(engine, "ready")

    run = begun(engine=engine)

    assert run.steps == {"load": STARTING}
    assert used(run) == [("load", 0, 1)]


def test_a_step_waits_and_is_woken_by_the_signal() -> None:
    run = begun(waiting(dependency("ready", n=(">", 1))))
    say(run.engine, "ready", n=1)
    assert run.steps == {"load": WAITING}

    say(run.engine, "ready", n=2)

    assert run.steps == {"load": STARTING}
    assert used(run) == [("load", 0, 2)]


def test_a_waiting_step_costs_nothing_while_it_waits() -> None:
    run = begun(waiting(dependency("ready")))
    before = len(run.events())

    run.engine.advance(3_600_000)

    assert len(run.events()) == before


def test_all_signals_must_be_there() -> None:
    run = begun(waiting(dependency("a"), dependency("b"), dependency("a", n=2)))

    say(run.engine, "a", n=1)
    say(run.engine, "b")
    assert run.steps == {"load": WAITING}
    say(run.engine, "a", n=2)

    assert run.steps == {"load": STARTING}
    assert sorted(used(run)) == [("load", 0, 1), ("load", 1, 1), ("load", 2, 2)]


@pytest.mark.parametrize(("match", "number"), [("any", 1), ("latest", 3)])
def test_of_several_in_the_past_any_or_the_latest_is_taken(match: str, number: int) -> None:
    engine = armed(steps=[waiting(dependency("ready", match=match))])
    for _ in range(3):
        say(engine, "ready")

    run = begun(engine=engine)

    assert used(run) == [("load", 0, number)]


@pytest.mark.parametrize(
    ("values", "number"),
    [({"n": (">=", 2)}, 4), ({"n": ("in", [1, 2])}, 3), ({"n": ("!=", 3)}, 3), ({"s": ("prefix", "a")}, 3), ({}, 4)],
)
def test_the_latest_is_the_latest_of_those_that_match(values: dict[str, Any], number: int) -> None:
    engine = armed(steps=[waiting(dependency("ready", match="latest", **values))])
    for n, s in ((2, "ab"), (1, "ac"), (2, "a"), (3, "b")):
        say(engine, "ready", n=n, s=s)

    run = begun(engine=engine)

    assert used(run) == [("load", 0, number)]


def test_many_steps_may_have_the_same_signal() -> None:
    engine = armed(steps=[waiting(dependency("ready"), step_id=f"s{number}") for number in range(5)])
    first, second = begun(engine=engine), begun(engine=engine)

    say(engine, "ready")

    assert set(first.steps.values()) == set(second.steps.values()) == {STARTING}
    assert len(told(engine, c.SignalAccepted)) == 1


def test_name_and_values_may_be_expressions_of_the_workflow() -> None:
    params = {"place": {"type": "STRING", "value": "us"}, "least": {"type": "LONG", "value": 4}}
    run = begun(waiting(dependency("ready.${place}", n=(">", "=least + 1"))), params=params)

    say(run.engine, "ready.us", n=5)
    assert run.steps == {"load": WAITING}
    say(run.engine, "ready.us", n=6)

    assert run.steps == {"load": STARTING}


def test_the_parameters_of_the_signal_are_there_for_the_step() -> None:
    text = "params.getFromSignalDependency('0', 'n') + params.getFromSignalDependency(1, 'm')"
    params = {"total": {"type": "LONG", "expression": text}}
    run = begun(waiting(dependency("a"), dependency("b"), params=params))

    say(run.engine, "a", n=2)
    say(run.engine, "b", m=3)

    assert typed(run.engine.task(run, "load").params["total"]) == 5


@pytest.mark.parametrize("index", ["'first'", "''", "'1.0'", "-1", "9", f"'{'9' * 30}'", f"'{'9' * 5_000}'"])
def test_a_step_that_asks_for_a_dependency_that_it_does_not_have_fails(index: str) -> None:
    asked = {"x": {"type": "STRING", "expression": f"params.getFromSignalDependency({index}, 'n')"}}

    run = begun(waiting(params=asked))

    assert run.steps == {"load": StepStatus.INTERNALLY_FAILED}
    assert "dependency" in run.changes("load")[-1].reason


def test_bypassing_lets_a_step_go_on_without_its_signals() -> None:
    run = begun(waiting(dependency("a"), dependency("b")))
    say(run.engine, "a")

    run.act("load", Action.BYPASS)
    say(run.engine, "b")

    assert run.steps == {"load": STARTING}
    assert used(run) == [("load", 0, 1), ("load", 1, 0)]


def test_a_bypassed_step_that_reads_the_signal_fails_with_what_happened() -> None:
    town = {"type": "STRING", "expression": "params.getFromSignalDependency('0', 'town')"}
    run = begun(waiting(dependency("address"), params={"town": town}))

    run.act("load", Action.BYPASS)

    assert run.steps == {"load": StepStatus.INTERNALLY_FAILED}
    assert "Expected the signal 'address', but the step continued without it" in run.changes("load")[-1].reason


def test_a_bypassed_step_does_not_wait_again_when_it_is_retried() -> None:
    retry = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1}}
    run = begun(waiting(dependency("a"), retry_policy=retry))
    run.act("load", Action.BYPASS)

    run.engine.task(run, "load").fail()
    run.engine.advance(1_000)

    assert run.steps == {"load": STARTING}
    assert run.step_rows()["load"].attempt == 2


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL, Action.SKIP])
def test_a_step_that_is_ended_while_it_waits_is_forgotten(action: Action) -> None:
    run = begun(waiting(dependency("a")))

    run.act("load", action)
    say(run.engine, "a")

    assert used(run) == []
    assert list(run.engine.state("signals", "a").subscriptions.prefix(("a",))) == []


def test_a_run_that_is_stopped_waits_for_nothing_any_more() -> None:
    run = begun(waiting(dependency("a")), waiting(dependency("a"), step_id="other"))

    run.stop()
    say(run.engine, "a")

    assert run.status is InstanceStatus.STOPPED
    assert [one.sequence for one in told(run.engine, c.AwaitEnded)] == [None, None]


def test_a_retry_keeps_the_signal_that_the_step_has() -> None:
    retry = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1}}
    run = begun(waiting(dependency("a", match="latest"), retry_policy=retry))
    say(run.engine, "a")

    run.engine.task(run, "load").fail()
    say(run.engine, "a")
    run.engine.advance(1_000)

    assert run.steps == {"load": STARTING}
    assert used(run) == [("load", 0, 1)]


def test_a_restart_keeps_the_signals_that_the_step_has_and_waits_for_the_others() -> None:
    run = begun(waiting(dependency("a"), dependency("b")))
    say(run.engine, "a")
    run.stop()

    run.restart(RestartPolicy.RESTART_FROM_INCOMPLETE)
    assert run.steps == {"load": WAITING}
    say(run.engine, "b")

    assert run.steps == {"load": STARTING}
    assert used(run) == [("load", 0, 1), ("load", 1, 1)]


def test_each_turn_of_a_loop_waits_anew() -> None:
    turn = {"n": {"type": "LONG", "expression": "params.getFromSignalDependency('0', 'n')"}}
    run = begun(
        waiting(dependency("go", match="latest"), transition={"successors": {"load": "n < 2"}}, params=turn),
    )
    say(run.engine, "go", n=1)
    say(run.engine, "go", n=2)

    run.engine.task(run, "load").succeed()

    assert run.step_rows()["load"].iteration == 2
    assert used(run) == [("load", 0, 1), ("load", 0, 2)]


@pytest.mark.parametrize("value", ["=1 / 0", "=none"])
def test_what_cannot_be_evaluated_fails_the_step_with_a_reason(value: str) -> None:
    run = begun(waiting(dependency("a", n=value)))

    assert run.steps == {"load": StepStatus.INTERNALLY_FAILED}
    assert run.changes("load")[-1].reason


def test_a_dependency_by_a_range_alone_finds_its_signal_by_the_value() -> None:
    world = World()
    for number in range(3 * search.LOOKS_MAX):
        world.announce(f"o{number}", n=number)

    reads = world.reads(c.AwaitSignal("s", 1, 1, "s", 1, 1, 0, '[{"param":"n","operator":">","value":5990}]', False))

    assert reads.total() < 10


def test_nothing_in_the_past_is_told_by_the_value_too() -> None:
    world = World()
    for number in range(2 * search.LOOKS_MAX):
        world.announce(f"o{number}", n=number)

    world.wait("s", n=(">", 10**6))

    assert not world.continued
    world.announce("last", n=10**6 + 1)
    assert world.woken() == [("s", 2 * search.LOOKS_MAX + 1)]


@pytest.mark.parametrize("is_latest", [False, True])
def test_a_long_past_is_looked_at_in_parts(is_latest: bool) -> None:
    world, count = World(), 3 * search.LOOKS_MAX
    for number in range(count):
        world.announce(f"o{number}", n=1, m=1 if number == count // 2 else 0)

    world.wait("s", is_latest=is_latest, n=1, m=(">", 0))
    assert len(world.continued) == 1
    world.go_on()

    assert world.woken() == [("s", count // 2 + 1)]
    assert world.replayed() == world.state.fingerprint()


def test_a_signal_that_comes_while_the_past_is_looked_at_ends_the_looking() -> None:
    world = World()
    for number in range(3 * search.LOOKS_MAX):
        world.announce(f"o{number}", n=1, m=0)
    world.wait("s", n=1, m=(">", 0))

    world.announce("new", n=1, m=1)
    world.go_on()

    assert world.woken() == [("s", 3 * search.LOOKS_MAX + 1)]


def test_a_step_that_waits_anew_is_told_once() -> None:
    world = World()
    for number in range(3 * search.LOOKS_MAX):
        world.announce(f"o{number}", n=1, m=1 if number == 2 * search.LOOKS_MAX else 0)
    world.wait("s", n=1, m=(">", 0))

    world.decide(c.ForgetAwait("s", 1, "s", 0))
    world.wait("s", n=1, m=(">", 0))
    world.go_on()

    assert world.woken() == [("s", 2 * search.LOOKS_MAX + 1)]


def test_tables_are_what_history_says() -> None:
    run = begun(waiting(dependency("a"), dependency("b", n=(">", 1))), waiting(dependency("c"), step_id="other"))
    say(run.engine, "a")
    say(run.engine, "b", n=3)
    run.engine.task(run, "load").say(Report.SUCCEEDED)
    run.stop()

    assert differing(run.engine) == []


def test_an_answer_to_an_earlier_attempt_is_not_taken() -> None:
    run = begun(waiting(dependency("a")))
    stale = c.MatchDependency(1, "load", 1, 1, 0, "a", "late", 9, "{}")
    run.act("load", Action.STOP)
    run.restart(RestartPolicy.RESTART_FROM_INCOMPLETE)

    run.engine.send(RUN_INTERNAL, run.key, stale)

    assert run.steps == {"load": WAITING}
    assert used(run) == []
