"""Calls with a limit: their results and errors come back, and one that is stuck does not keep anybody."""

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kapelle.topology.kafka.bounded import BoundedCalls

LONG_S = 30.0
SHORT_S = 0.01


class Held:
    """Stands for the producer that is called."""

    def fail(self) -> None:
        raise ZeroDivisionError


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_call_is_made_in_a_thread_of_its_own() -> None:
    calls = BoundedCalls()
    seen: list[threading.Thread] = []

    calls.call(lambda: seen.append(threading.current_thread()), LONG_S)
    calls.call(lambda: seen.append(threading.current_thread()), LONG_S)

    assert seen[0] is seen[1] is not threading.current_thread()
    assert seen[0].daemon
    calls.close()


def test_what_a_call_raises_is_raised_here() -> None:
    calls = BoundedCalls()

    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 / 0, LONG_S)

    calls.close()


@pytest.mark.usefixtures("_no_collector")
def test_a_call_that_failed_keeps_nothing_once_its_error_is_forgotten() -> None:
    calls, held = BoundedCalls(), Held()
    gone = weakref.ref(held)

    with suppress(ZeroDivisionError):
        calls.call(held.fail, LONG_S)
    del held
    calls.call(lambda: None, LONG_S)  # the thread has gone on

    assert gone() is None
    calls.close()


def test_a_call_that_is_stuck_is_given_up_after_its_time() -> None:
    calls, stuck = BoundedCalls(), threading.Event()

    with pytest.raises(TimeoutError):
        calls.call(lambda: stuck.wait(LONG_S), SHORT_S)

    stuck.set()
    calls.close()


def test_the_thread_ends_after_a_call_that_was_stuck() -> None:
    calls, stuck = BoundedCalls(), threading.Event()
    threads: list[threading.Thread] = []

    def wait() -> None:
        threads.append(threading.current_thread())
        stuck.wait(LONG_S)

    with pytest.raises(TimeoutError):
        calls.call(wait, SHORT_S)
    calls.close()
    stuck.set()

    threads[0].join(LONG_S)
    assert not threads[0].is_alive()
