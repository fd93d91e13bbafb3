"""Ids: of strangers as they are, of ours by what they are about."""

import pytest

from kapelle.tracing.ids import Ids, Trace, given

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_traceparent_names_trace_parent_and_whether_it_is_sampled() -> None:
    assert given(TRACEPARENT) == Trace(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, True)
    assert given(TRACEPARENT[:-2] + "00") == Trace(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, False)


@pytest.mark.parametrize(
    "text",
    [None, "", "nonsense", "00-zz-11-01", "00-0-1-01", "00-1-0-01", "00-1-1", f"00-{'f' * 33}-1-01"],
)
def test_what_is_no_traceparent_names_nothing(text: str | None) -> None:
    assert given(text) is None


def test_two_deployments_have_different_ids() -> None:
    ours, theirs = Ids("ours"), Ids("theirs")

    assert ours.run("etl", 1, 1) != theirs.run("etl", 1, 1)
    assert ours.trace_of_signal("orders", 1, None) != theirs.trace_of_signal("orders", 1, None)


def test_names_are_not_run_together() -> None:
    ids = Ids("ours")

    assert ids.run("etl", 1, 11) != ids.run("etl", 11, 1)
    assert ids.signal("orders", 12) != ids.signal("orders1", 2)


def test_the_order_of_signals_does_not_matter_to_a_firing() -> None:
    ids = Ids("ours")

    assert ids.firing("etl", "t", {"a": 1, "b": 2}) == ids.firing("etl", "t", {"b": 2, "a": 1})
    assert ids.firing("etl", "t", {"a": 1, "b": 2}) != ids.firing("etl", "t", {"a": 2, "b": 1})


def test_a_ratio_of_nought_samples_nothing_and_one_of_one_everything() -> None:
    nothing, everything = Ids("ours", 0.0), Ids("ours", 1.0)

    assert not any(nothing.trace_of_instance("etl", number, None).is_sampled for number in range(100))
    assert all(everything.trace_of_instance("etl", number, None).is_sampled for number in range(100))
