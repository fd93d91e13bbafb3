"""Whatever is done to a tree of instances, the engine does what the model does, and the laws of its tables hold."""

from collections.abc import Callable
from copy import deepcopy
from itertools import count
from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.property.composites import model
from tests.property.composites.driving import Driver
from tests.property.composites.model import Either, How, Kind, Path, Refused, Spec

DEPTH_MAX = 4
MODES = ["FAIL_AFTER_RUNNING", "FAIL_AFTER_RUNNING", "IGNORE_FAILURE", "FAIL_IMMEDIATELY"]
AGAIN = ["restart"] * 3 + ["again", "skip"]
DEEDS = ["good"] * 3 + ["bad"] * 2 + AGAIN + ["act", "stop", "repeat", "late"] + ["die"] * 2


@st.composite
def blocks(draw: st.DrawFn, depth: int = 1, names: Any = None) -> tuple[Spec, ...]:
    """The steps of a block."""
    names = names or count(1)
    return tuple(draw(specs(depth, names)) for _ in range(draw(st.sampled_from([1, 1, 2]))))


@st.composite
def specs(draw: st.DrawFn, depth: int, names: Any) -> Spec:
    """A step, with what is inside of it."""
    every: list[Kind] = ["foreach", "while", "sub", "leaf"]
    kinds = every[3:] if depth > DEPTH_MAX else every[: 4 if depth > 1 else 3]
    kind = draw(st.sampled_from(kinds))
    name = f"{kind[0]}{next(names)}"
    if kind == "leaf":
        return Spec(name, "leaf")
    inside = draw(blocks(depth + draw(st.sampled_from([1, 1, 3])), names))
    return Spec(
        name,
        kind,
        inside,
        count=draw(st.integers(0, 3)) if kind in ("foreach", "while") else 1,
        window=draw(st.integers(0, 2)),
        strict=draw(st.booleans()),
        mode=draw(st.sampled_from(MODES)),
        sync=kind != "sub" or draw(st.sampled_from([True, True, False])),
    )


def names(block: tuple[Spec, ...]) -> list[str]:
    """Of all steps."""
    return [name for one in block for name in (one.name, *names(one.steps))]


Deed = tuple[str, int, int]
DEED = st.tuples(st.sampled_from(DEEDS), st.integers(0, 1_000), st.integers(0, 1_000))


def do(driver: Driver, deed: Deed) -> None:
    """Do the same to the engine and to the model. What the one refuses, the other refuses too."""
    kind, where, how = deed
    if kind == "late":
        driver.late()
    elif kind == "die":
        driver.engine.moments = 1 + how % 40
    elif kind == "repeat":
        driver.repeat(where)
    elif kind in AGAIN:
        do_again(driver, deed)
    else:
        end(driver, deed)


def end(driver: Driver, deed: Deed) -> None:
    """End what runs: a worker reports, or a person acts."""
    kind, where, how = deed
    steps, running = driver.steps(), [one for one in driver.instances() if one.status == model.RUNNING]
    leaves = [one for one in steps if one.spec.kind == "leaf"]
    if kind in ("good", "bad") and leaves:
        leaf = leaves[where % len(leaves)]
        driver.report(leaf, is_good=kind == "good")
        leaf.report(is_good=kind == "good")
    elif kind == "act" and steps:
        step, action = steps[where % len(steps)], ["STOP", "KILL", "SKIP"][how % 3]
        driver.act(step, action)
        step.act(action)
    elif kind == "stop" and running:
        instance, is_kill = running[where % len(running)], bool(how % 2)
        driver.stop(instance, "KILL" if is_kill else "STOP")
        instance.stop("FATALLY_FAILED" if is_kill else "STOPPED")


def do_again(driver: Driver, deed: Deed) -> None:
    """Run again what has ended, or go on without what has failed. Children that nobody waits for must be over."""
    kind, where, how = deed
    instances = driver.instances()
    ended = [one for one in instances if one.status != model.RUNNING]
    failed = [one for each in instances for one in each.steps.values() if one.status in model.AGAIN]
    if any(one.status == model.RUNNING and one.above and not one.above.spec.sync for one in instances):
        return
    if kind == "restart" and ended:
        instance = ended[where % len(ended)]
        policy: How = "incomplete" if how % 2 else "all"
        given = how if instance is driver.root and how % 3 == 0 else None
        if is_foreseen(lambda: model.restart(deepcopy(instance), policy, given)):
            both(
                driver, lambda: driver.restart(instance, policy, given), lambda: model.restart(instance, policy, given)
            )
    elif kind == "again":
        instance = instances[where % len(instances)]
        path = Path(list(instance.steps)[how % len(instance.steps)])
        if is_foreseen(lambda: model.restart(deepcopy(instance), path)):
            both(driver, lambda: driver.restart(instance, path), lambda: model.restart(instance, path))
    elif kind == "skip" and failed:
        step = failed[where % len(failed)]
        if is_foreseen(lambda: deepcopy(step).skip_failed()):
            both(driver, lambda: driver.act(step, "SKIP"), step.skip_failed)


def is_foreseen(on_a_copy: Callable[[], None]) -> bool:
    """Whether the model can tell what comes of it."""
    try:
        on_a_copy()
    except Either:
        return False
    except Refused:
        return True
    return True


def both(driver: Driver, on_engine: Callable[[], None], on_model: Callable[[], None]) -> None:
    before = len(driver.engine.refusals())
    on_engine()
    is_refused = len(driver.engine.refusals()) > before
    try:
        on_model()
    except Refused:
        assert is_refused, "Expected the engine to refuse it, but it did not"
    else:
        assert not is_refused, driver.engine.refusals()[-1].message


@settings(max_examples=40, deadline=None)
@given(
    block=blocks(),
    deeds=st.lists(DEED, min_size=5, max_size=25),
    same_cycle=st.booleans(),
    hasty=st.integers(0, 1_000),
)
def test_the_engine_does_what_the_model_does(
    block: tuple[Spec, ...], deeds: list[Deed], same_cycle: bool, hasty: int
) -> None:
    known = names(block)
    driver = Driver(block, same_cycle=same_cycle, hasty=known[hasty % len(known)])
    driver.check()

    for deed in deeds:
        note(f"{deed}")
        do(driver, deed)
        driver.check()

    driver.check_runs()
    driver.check_leaves()
