"""The stop of a process: SIGTERM and SIGINT, and a limit on the time that the process takes to leave.

A signal handler of Python's runs only between two of its own instructions; a process that waits for a broker that is
away would not hear it for many seconds. So a thread waits for the signals. When leaving in good order takes too long,
it ends the process: that is no worse than a crash, and nothing is lost in a crash. Where that thread cannot run either,
because a client library has kept Python's lock in a call that never returns, the limit is kept without Python, and all
threads tell where they stand. Before the work has begun there is nothing to leave, and the process ends at once.
"""

import faulthandler
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kapelle.cli.errors import ExitCode

STOP_S: Final = 4.5  # five seconds, less the time to end
LOCKED_S: Final = 4.8  # the same, where no thread of Python's can run
STDERR: Final = 2
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("kapelle.run")


class Stopping:
    """Whether we have been told to stop."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._left = threading.Event()
        self._released = threading.Event()
        self._working = False

    def working(self) -> None:
        """From now on there is something to leave in good order."""
        self._working = True

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def pause(self, seconds: float) -> bool:
        """Wait a while, or until we are told to stop. Returns whether we are."""
        return self._asked.wait(seconds)

    def wait(self) -> None:
        """Wait for a signal, then for the end of the work, but not for ever."""
        number = signal.sigwait(SIGNALS)
        if not self._left.is_set():
            _log.info("stopping on %s", signal.Signals(number).name)
            self._asked.set()
            if not self._working:
                os._exit(ExitCode.OK)
            faulthandler.dump_traceback_later(LOCKED_S, exit=True, file=STDERR)  # with 1, as a failure
            if not self._left.wait(STOP_S):
                _log.error(
                    "stopped before the shutdown was complete: nothing is lost", extra={"fields": {"after_s": STOP_S}}
                )
                os._exit(ExitCode.FAILURE)
            faulthandler.cancel_dump_traceback_later()
        self._released.wait()

    def done(self, waiter: threading.Thread) -> None:
        """The work is done: let the waiting thread go. It lives until released, so the signal finds it."""
        self._left.set()
        if waiter.ident is not None:
            signal.pthread_kill(waiter.ident, SIGNALS[0])
        self._released.set()
        waiter.join()


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Hear signals within this block. Enter it before any other thread starts: threads inherit what is blocked."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    heard = Stopping()
    waiter = threading.Thread(target=heard.wait, name="kapelle-signals", daemon=True)
    waiter.start()
    try:
        yield heard
    finally:
        heard.done(waiter)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
