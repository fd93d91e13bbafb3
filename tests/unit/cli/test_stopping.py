"""Signals are heard by a thread, and nothing of it is left when the work is done."""

import signal
import subprocess
import sys
import threading

from kapelle.cli.errors import ExitCode
from kapelle.cli.shutdown import SIGNALS, stopping

NAME = "kapelle-signals"
HEARD_S = 5.0
LOCKED = """
import ctypes
from kapelle.cli.shutdown import stopping

with stopping() as heard:
    heard.working()
    print("up", flush=True)
    heard.pause(60)
    ctypes.PyDLL(None).sleep(60)  # a call that keeps Python's lock: no other thread can run
"""


def waiters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def test_nothing_is_left_when_the_work_ends_by_itself() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])

    with stopping() as heard:
        heard.working()

    assert waiters() == []
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert not heard.asked


def test_a_signal_asks_the_work_to_end() -> None:
    with stopping() as heard:
        heard.working()
        # To the thread itself: the process of the tests has others, which do not expect one.
        signal.pthread_kill(waiters()[0].ident or 0, SIGNALS[0])
        assert heard._asked.wait(HEARD_S)

    assert waiters() == []


def test_work_that_keeps_pythons_lock_is_ended_all_the_same() -> None:
    with subprocess.Popen([sys.executable, "-c", LOCKED], stdout=-1, stderr=-1, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.terminate()
        _, said = running.communicate(timeout=30)

    assert running.returncode == ExitCode.FAILURE
    assert 'File "<string>", line 9 in <module>' in said  # where it stood


def test_the_work_does_not_see_the_signals_itself() -> None:
    with stopping():
        assert set(SIGNALS) <= signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_an_error_in_the_work_gets_out() -> None:
    seen: list[str] = []
    try:
        with stopping():
            raise LookupError("out")
    except LookupError as error:
        seen.append(str(error))

    assert seen == ["out"]
    assert waiters() == []
