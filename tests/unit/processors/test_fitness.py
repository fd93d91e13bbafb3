"""Which records are fit to be folded: the numbers in arrays and in records within records."""

from kapelle.processors.fitness import unfit
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind

KEY = "etl/1"


def launched(*numbers: int) -> c.ChildrenLaunched:
    return c.ChildrenLaunched(
        run_id=1, step_id="loop", attempt=1, iteration=1, numbers=numbers, next=3, at_ms=1_700_000_000_000
    )


def asked(number: int) -> c.StartChild:
    parent = c.Parent(
        key=KEY,
        run_id=1,
        step_id="call",
        attempt=1,
        iteration=1,
        number=number,
        kind=ChildKind.SUBWORKFLOW,
        root=KEY,
        home=KEY,
        depth=1,
    )
    texts = {"version": "active", "initiator": "{}", "run_params": "{}", "correlation_id": ""}
    return c.StartChild(request_id="r", author="ann", parent=parent, **texts)


def test_each_number_of_an_array_must_be_within_bounds() -> None:
    assert unfit(RUN_EVENTS, KEY, launched()) is None
    assert unfit(RUN_EVENTS, KEY, launched(1, 2)) is None

    assert "Expected numbers of ChildrenLaunched within bounds" in str(unfit(RUN_EVENTS, KEY, launched(1, 2**60)))


def test_numbers_of_a_record_within_a_record_must_be_within_bounds() -> None:
    assert unfit(WORKFLOW_INTERNAL, "etl", asked(1)) is None

    assert "parent.number" in str(unfit(WORKFLOW_INTERNAL, "etl", asked(-1)))
