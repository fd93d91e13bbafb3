"""A flood of one workflow does not starve others of the same criticality, and no class waits for ever."""

from collections import Counter, deque
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.permits.policy import PASSED_OVER_MAX
from kapelle.schemas.contracts import Criticality
from tests.unit.permits.world import World

ARRIVAL: Final = st.tuples(st.sampled_from("aaaaabcd"), st.integers(1, 6))
FREED: Final = st.integers(1, 4)
TURNS: Final = st.lists(ARRIVAL | FREED, max_size=60)
CLASSES: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW)


@settings(max_examples=100, deadline=None)
@given(turns=TURNS, most=st.integers(1, 3))
def test_while_an_attempt_waits_each_other_workflow_gets_little_more_than_its_own(
    turns: list[tuple[str, int] | int], most: int
) -> None:
    world = World()
    world.limit(most)
    others: dict[str, Counter[str]] = {}  # who was admitted while an attempt waits, by workflow
    ahead: dict[str, int] = {}  # attempts of its own workflow that wait before it
    seen = 0

    for turn in [*turns, 1_000]:
        for _ in range(turn if isinstance(turn, int) else turn[1]):
            if isinstance(turn, int):
                world.give_back(*world.held()[:1])
            else:
                name = f"{turn[0]}{len(world.workflows)}"
                mine = [other for other in world.waiting() if other[0] == turn[0]]
                world.ask(name, workflow=turn[0])
                if name in world.waiting():
                    others[name], ahead[name] = Counter(), len(mine)
            for admitted in world.granted[seen:]:
                others.pop(admitted, None)
                for name, counter in others.items():
                    counter[admitted[0]] += 1
                    if admitted[0] != name[0]:
                        assert counter[admitted[0]] <= ahead[name] + 2
            seen = len(world.granted)
    assert not others


@settings(max_examples=100, deadline=None)
@given(
    turns=st.lists(st.tuples(st.sampled_from(CLASSES), st.integers(0, 8)) | FREED, max_size=60),
    most=st.integers(1, 3),
)
def test_a_class_that_waits_gets_a_permit_after_a_bounded_number_of_others(
    turns: list[tuple[Criticality, int] | int], most: int
) -> None:
    world = World()
    world.limit(most)
    classes: dict[str, Criticality] = {}
    queues: dict[Criticality, deque[str]] = {criticality: deque() for criticality in CLASSES}
    passed: Counter[Criticality] = Counter()
    seen = 0

    for turn in [*turns, 1_000]:
        for _ in range(turn if isinstance(turn, int) else turn[1]):
            if isinstance(turn, int):
                world.give_back(*world.held()[:1])
            else:
                name = f"s{len(classes)}"
                classes[name] = turn[0]
                world.ask(name, criticality=turn[0])
                if name in world.waiting():
                    queues[turn[0]].append(name)
            for admitted in world.granted[seen:]:
                chosen = classes[admitted]
                if queues[chosen]:
                    assert queues[chosen].popleft() == admitted  # of one workflow: first come, first served
                passed[chosen] = 0
                for other in CLASSES:
                    passed[other] = passed[other] + 1 if queues[other] and other != chosen else 0
                assert max(passed.values()) <= PASSED_OVER_MAX + len(CLASSES) - 2
            seen = len(world.granted)
    assert not any(queues.values())
