"""Nobody is told twice or not at all, in however small parts the work is done, while subscriptions come and go."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.signals import deciding, search
from kapelle.schemas import contracts as c
from tests.property.signals.model import Params, fulfils
from tests.unit.signals.world import World

SCALARS: st.SearchStrategy[str | int] = st.sampled_from([0, 1, 2, "a", "ab", "b"])
PARAMS: st.SearchStrategy[Params] = st.dictionaries(st.sampled_from("pq"), SCALARS, max_size=2)
LISTS = st.lists(SCALARS, min_size=1, max_size=2)
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), SCALARS),
    st.tuples(st.just("in"), LISTS),
    st.tuples(st.just("prefix"), st.sampled_from(["", "a", "ab"])),
)
WANTED = st.dictionaries(st.sampled_from("pq"), CONDITIONS, max_size=2)
SAY = st.tuples(st.just("say"), PARAMS)
GO = st.tuples(st.just("go on"))
SUBSCRIBE = st.tuples(st.just("subscribe"), st.integers(0, 5), WANTED, st.booleans())
UNSUBSCRIBE = st.tuples(st.just("unsubscribe"), st.integers(0, 5))
WAIT = st.tuples(st.just("wait"), WANTED, st.booleans())


@pytest.fixture(autouse=True, scope="module")
def _small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "OFFERS_MAX", 2)
        patch.setattr(search, "LOOKS_MAX", 3)
        yield


def plain(wanted: dict[str, Any]) -> tuple[tuple[str, str, Any], ...]:
    return tuple((param, how, value) for param, (how, value) in wanted.items())


def one_part(world: World) -> None:
    if world.continued:
        name, value = world.continued.popleft()
        world.decide(value, name)


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(st.one_of(SAY, SAY, GO, SUBSCRIBE, SUBSCRIBE, UNSUBSCRIBE), max_size=50))
def test_each_subscription_is_offered_each_matching_signal_once(turns: list[tuple[Any, ...]]) -> None:
    world, said, generation = World(), list[Params](), 0
    made: dict[int, tuple[int, int, dict[str, Any], bool]] = {}  # by generation: trigger, since, wanted, from earliest
    live: dict[int, int] = {}
    for turn in turns:
        match turn:
            case "say", params:
                said.append(params)
                world.announce(str(len(said)), **params)
            case ("go on",):
                one_part(world)
            case "subscribe", number, wanted, is_past if number not in live:
                generation += 1
                made[generation], live[number] = (number, len(said), wanted, is_past), generation
                world.subscribe(f"t{number}", since_at_ms=0 if is_past else None, generation=generation, **wanted)
            case "unsubscribe", number:
                live.pop(number, None)
                world.unsubscribe(f"t{number}")
    world.go_on()

    offers = [one for _, one in world.sent if isinstance(one, c.OfferSignal)]
    for number, (_, since, wanted, is_past) in made.items():
        found = [one.sequence for one in offers if one.generation == number]
        due = [at for at, params in enumerate(said, 1) if fulfils(params, plain(wanted)) and (is_past or at > since)]
        assert len(found) == len(set(found))
        assert set(found) <= set(due)
        if number in live.values():
            assert sorted(found) == due
    assert world.replayed() == world.state.fingerprint()


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(st.one_of(SAY, SAY, GO, WAIT), max_size=40))
def test_each_waiting_step_has_the_signal_that_it_wants(turns: list[tuple[Any, ...]]) -> None:
    world, said = World(), list[Params]()
    steps: dict[str, tuple[int, dict[str, Any], bool]] = {}
    done: list[int] = []  # how many signals had been announced whenever nothing was left to go on with
    for turn in turns:
        match turn:
            case "say", params:
                said.append(params)
                world.announce(str(len(said)), **params)
            case ("go on",):
                one_part(world)
            case "wait", wanted, is_latest:
                step = f"s{len(steps)}"
                steps[step] = (len(said), wanted, is_latest)
                world.wait(step, is_latest=is_latest, **wanted)
        if not world.continued:
            done.append(len(said))
    world.go_on()
    done.append(len(said))

    woken = world.woken()
    assert len(woken) == len(dict(woken))
    for step, (since, wanted, is_latest) in steps.items():
        matching = [at for at, params in enumerate(said, 1) if fulfils(params, plain(wanted))]
        found = dict(woken).get(step)
        assert (found is None) == (not matching)
        if found is not None:
            before, after = [at for at in matching if at <= since], [at for at in matching if at > since]
            wished = {before[-1]} if before and is_latest else set(before)
            # The first one after it; or one that came while the first was still being offered to others.
            until = min(count for count in done if count >= after[0]) if after else 0
            assert found in wished | {at for at in after if at <= until}
    assert world.replayed() == world.state.fingerprint()
