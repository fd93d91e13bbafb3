"""Offers an event to a sink until it is taken, with growing waits, or until there is no hope for it.

| the sink | what is done |
|---|---|
| takes it | that was it |
| is away: no answer, or one that says so | it is offered again, for ever unless the file tells of patience |
| fails | it is offered again, so many times as the file says |
| refuses it | it becomes a dead letter |
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from kapelle.sinks.errors import NotDelivered, Undeliverable
from kapelle.sinks.events import CloudEvent
from kapelle.sinks.models import Retry

RETRY_AFTER_S_MAX: Final = 3_600.0
DOUBLINGS_MAX: Final = 30

_log = logging.getLogger("kapelle.sinks")


class Receiver(Protocol):
    """What a sink is to a courier. Called from several threads."""

    def send(self, event: CloudEvent) -> None:
        """Deliver an event once. Raises `NotDelivered` or `Undeliverable`."""
        ...

    def close(self) -> None: ...


class Interrupted(Exception):
    """We were told to stop before the event was taken: it will be read again."""


class Attempt(msgspec.Struct):
    """How it stands with one event: offers that failed, those of them that the event may be to blame for."""

    began_s: float
    failed: int = 0
    blamed: int = 0


def delay_s(retry: Retry, failed: int, *, retry_after_s: float = 0.0, draw: Callable[[], float]) -> float:
    """How long to wait after so many failures: drawn from all up to a bound that doubles, and never before asked."""
    bound_ms = min(retry.longest_ms, retry.first_ms << min(failed - 1, DOUBLINGS_MAX))
    return max(draw() * bound_ms / 1000, min(retry_after_s, RETRY_AFTER_S_MAX))


class Courier:
    """Delivers for one sink. `failed` is told of each offer that came to nothing."""

    def __init__(
        self, receiver: Receiver, retry: Retry, stop: threading.Event, *, failed: Callable[[NotDelivered], None]
    ) -> None:
        self._receiver = receiver
        self._retry = retry
        self._stop = stop
        self._failed = failed
        self._draw = random.random

    def deliver(self, event: CloudEvent, is_void: Callable[[], bool]) -> None:
        """Deliver an event. Raises `Undeliverable`, or `Interrupted` when told to stop or when it is void."""
        attempt = Attempt(time.monotonic())
        while True:
            if self._stop.is_set() or is_void():
                raise Interrupted
            try:
                self._receiver.send(event)
            except NotDelivered as error:
                self._failed(error)
                self._wait(attempt, error)
            else:
                return

    def _wait(self, attempt: Attempt, error: NotDelivered) -> None:
        attempt.failed += 1
        attempt.blamed += not error.is_away
        waited_s, patience_s = time.monotonic() - attempt.began_s, self._retry.patience_s
        if attempt.blamed >= self._retry.attempts or (patience_s is not None and waited_s >= patience_s):
            raise Undeliverable(f"{error} ({attempt.failed} attempts in {waited_s:.0f} s)") from error
        pause_s = delay_s(self._retry, attempt.failed, retry_after_s=error.retry_after_s, draw=self._draw)
        self._stop.wait(pause_s)
