"""Events are offered again as long as there is hope, with waits that grow."""

import threading
from collections.abc import Callable

import pytest

from kapelle.sinks.courier import Courier, Interrupted, delay_s
from kapelle.sinks.errors import NotDelivered, Undeliverable
from kapelle.sinks.events import CloudEvent
from kapelle.sinks.models import Retry
from kapelle.sinks.webhooks import retry_after_s

QUICK = Retry(attempts=3, first_ms=1, longest_ms=1)
EVENT = CloudEvent({"id": "e1"}, "k", {})


class Scripted:
    """A receiver that fails as it is told to, and then takes what comes."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.offered: list[CloudEvent] = []

    def send(self, event: CloudEvent) -> None:
        self.offered.append(event)
        if self.failures:
            raise self.failures.pop(0)

    def close(self) -> None:
        """Nothing to close."""


def courier(receiver: Scripted, failed: Callable[[NotDelivered], None] = lambda _: None) -> Courier:
    return Courier(receiver, QUICK, threading.Event(), failed=failed)


def failure(*, is_away: bool) -> NotDelivered:
    return NotDelivered("Expected an answer", is_away=is_away)


def test_a_failure_is_told_and_the_event_offered_again() -> None:
    told: list[NotDelivered] = []
    receiver = Scripted(failure(is_away=False), failure(is_away=True))

    courier(receiver, told.append).deliver(EVENT, lambda: False)

    assert (receiver.offered, len(told)) == ([EVENT] * 3, 2)


def test_an_event_that_fails_too_often_is_given_up() -> None:
    receiver = Scripted(*[failure(is_away=False)] * 3)

    with pytest.raises(Undeliverable, match=r"Expected an answer \(3 attempts in 0 s\)"):
        courier(receiver).deliver(EVENT, lambda: False)


def test_a_sink_that_is_away_is_no_fault_of_the_event() -> None:
    receiver = Scripted(*[failure(is_away=True)] * 20)

    courier(receiver).deliver(EVENT, lambda: False)

    assert len(receiver.offered) == 21


def test_an_event_of_somebody_else_is_not_offered() -> None:
    receiver = Scripted()

    with pytest.raises(Interrupted):
        courier(receiver).deliver(EVENT, lambda: True)

    assert receiver.offered == []


@pytest.mark.parametrize(("failed", "bound_s"), [(1, 0.5), (2, 1.0), (4, 4.0), (8, 60.0), (5_000, 60.0)])
def test_waits_are_drawn_from_a_range_that_doubles(failed: int, bound_s: float) -> None:
    assert delay_s(Retry(), failed, draw=lambda: 1.0) == bound_s
    assert delay_s(Retry(), failed, draw=lambda: 0.0) == 0.0
    assert delay_s(Retry(), failed, draw=lambda: 0.5) == bound_s / 2


def test_what_the_receiver_asks_for_is_waited_within_reason() -> None:
    assert delay_s(Retry(), 1, retry_after_s=7.0, draw=lambda: 0.0) == 7.0
    assert delay_s(Retry(), 1, retry_after_s=1e9, draw=lambda: 0.0) == 3_600.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 0.0),
        ("120", 120.0),
        (" 3 ", 3.0),
        ("-1", 0.0),
        ("soon", 0.0),
        ("9" * 30, 0.0),
        ("Mon, 16 Nov 2026 20:00:30 GMT", 30.0),
        ("Mon, 16 Nov 2026 19:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(header: str, seconds: float) -> None:
    assert retry_after_s(header, 1_794_859_200.0) == seconds
