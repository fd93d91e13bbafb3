"""The runner: takes tasks, runs their steps, keeps their leases, reports their results, and drains.

Two threads communicate with the engine. The *taker* takes as many tasks as there is room for, and receives
cancellations. The *speaker* sends results at once, and a heartbeat after each third of a lease, whatever the steps are
doing. A task that was cancelled, was refused or has lost its lease is stopped, and its result is dropped. Every wait in
this module has a limit.
"""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from kapelle.schemas.contracts import Report, Task
from kapelle.worker import execution
from kapelle.worker.context import Context
from kapelle.worker.errors import TransportUnavailable, WorkerError
from kapelle.worker.hands import Loop, Threads
from kapelle.worker.held_tasks import Held, Holding
from kapelle.worker.steps import Step
from kapelle.worker.transport import Answer, TaskReport, Transport

TAKE_WAIT_S: Final = 0.5
FULL_WAIT_S: Final = 0.1
REPORTS_MAX: Final = 100
RETRY_MIN_S: Final = 0.05
RETRY_MAX_S: Final = 2.0
SPEAK_MAX_S: Final = 1.0  # the speaker looks for lost leases this often at least
LAST_WORDS_S: Final = 5.0  # how long handed-back tasks may take to be told after a drain
LOOP_END_S: Final = 1.0

_log = logging.getLogger("kapelle.worker")


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker behaves. `prefetch` tasks more than can run are held ready, the most important first."""

    concurrency: int = 8
    prefetch: int = 0
    drain_timeout_s: float = 30.0
    name: str = ""  # unique among workers; made if it is not given

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.prefetch < 0 or self.drain_timeout_s < 0:
            raise ValueError(
                "Expected concurrency of 1 or more, and prefetch and drain_timeout_s of 0 or more, but found "
                f"{self.concurrency}, {self.prefetch} and {self.drain_timeout_s:g}"
            )


class Counts(msgspec.Struct):
    """What a worker has done since it began. Each is counted by one thread, and may be read by any."""

    taken: int = 0
    done: int = 0  # results that the engine has heard
    refused: int = 0  # reports that the engine did not take
    lost: int = 0  # leases that ran out because nobody could be told
    waits: int = 0  # times that the engine could not be reached for tasks


class Runner:
    """Serves steps over a transport, in threads of its own, from `start` to `stop`."""

    def __init__(self, steps: Mapping[str, Step], transport: Transport, settings: WorkerSettings | None = None) -> None:
        self.settings = settings or WorkerSettings()
        self.name = self.settings.name or unique_name()
        self.failure: BaseException | None = None
        self.counts = Counts()
        self.is_connected = False  # whether tasks could be asked for, the last time that they were
        self._steps = dict(steps)
        self._transport = transport
        self._holding = Holding(self.settings.concurrency, self.settings.prefetch)
        self._threads = Threads(f"{self.name}-step")
        self._loop = Loop(f"{self.name}-loop")
        self._draining = threading.Event()
        self._quiet = threading.Event()  # the taker has ended: nothing more comes
        self._stopped = threading.Event()
        self._drain_until_s = 0.0
        self._taker = threading.Thread(target=self._supervised, args=(self._take,), name=f"{self.name}-take")
        self._speaker = threading.Thread(target=self._supervised, args=(self._speak,), name=f"{self.name}-speak")
        self._taker.daemon = self._speaker.daemon = True

    # Life -------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve. Returns at once."""
        self._transport.open(self.name, sorted(self._steps))
        _log.info("serving", extra={"fields": {"worker": self.name, "types": ",".join(sorted(self._steps))}})
        self._taker.start()
        self._speaker.start()

    def drain(self, timeout_s: float | None = None) -> None:
        """Stop taking tasks. The runner ends when all are done, or after the time-out. Returns at once."""
        wait_s = self.settings.drain_timeout_s if timeout_s is None else timeout_s
        self._drain_until_s = time.monotonic() + wait_s
        self._draining.set()  # no lock is taken here: this may run in a signal handler

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the runner has ended. False: it has not."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in (self._taker, self._speaker):
            thread.join(None if until_s is None else max(0.0, until_s - time.monotonic()))
            if thread.is_alive():
                return False
        return True

    def stop(self, timeout_s: float | None = None) -> None:
        """Drain, wait for the end, and close the transport. Raises the error that the runner failed with."""
        self.drain(timeout_s)
        self.wait()
        self.close()

    def close(self) -> None:
        """Close everything, after the end. Raises the error that the runner failed with."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._threads.close()
            self._loop.close(LOOP_END_S)
            self._transport.close()
        if self.failure is not None:
            raise self.failure

    @property
    def in_hand(self) -> int:
        """How many tasks the worker has."""
        return self._holding.in_hand

    def _supervised(self, work: Callable[[], None]) -> None:
        try:
            work()
        except WorkerError as error:
            _log.error("the worker stops: %s", error)
            self._fail(error)
        except BaseException as error:  # noqa: BLE001 - supervised: `failure` holds it, and `close` raises it
            _log.exception("the worker failed")
            self._fail(error)
        finally:
            if work == self._take:
                self._quiet.set()

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.drain(0)

    # Taking -----------------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        delays = Delays()
        while not self._draining.is_set():
            try:
                self._hear()
                room = self._holding.room()
                self._begin(self._transport.take(room, TAKE_WAIT_S if room else 0.0))
                delays.reset()
                self.is_connected = True
            except TransportUnavailable as error:
                self.is_connected = False
                self.counts.waits += 1
                _log.warning("cannot take tasks: %s", error)
                self._draining.wait(delays.next_s())
                continue
            if not room:
                self._holding.wait_for_room(FULL_WAIT_S)
        self._drain()

    def _drain(self) -> None:
        self._transport.drain()
        while self._holding.in_hand and time.monotonic() < self._drain_until_s and self.failure is None:
            try:
                self._hear()
            except TransportUnavailable as error:
                _log.warning("cannot receive cancellations: %s", error)
            with self._holding.changed:
                self._holding.changed.wait(FULL_WAIT_S)
        left = self._holding.hand_back(f"The worker {self.name!r} was stopped before the step was done")
        if left:
            _log.warning("returned tasks that were not finished in time", extra={"fields": {"tasks": len(left)}})

    def _hear(self) -> None:
        for token, reason in self._transport.cancellations():
            self._give_up(token, reason or "The task was cancelled")

    def _give_up(self, token: str, reason: str) -> None:
        held = self._holding.give_up(token, reason)
        if held is not None:
            _log.info("stopping a task", extra={"fields": {**_fields(held.task), "reason": reason}})

    def _begin(self, tasks: Sequence[Task]) -> None:
        now_s = time.monotonic()
        self.counts.taken += len(tasks)
        self._holding.add([Held(task, Context(task, self._beat), now_s) for task in tasks])
        self._run_ready()

    def _run_ready(self) -> None:
        for held in self._holding.ready():
            self._run(held)

    def _run(self, held: Held) -> None:
        task, context = held.task, held.context
        step = self._steps.get(task.type)
        if step is None:
            expected = ", ".join(sorted(self._steps))
            message = f"Expected a task of type {expected}, but found {task.type!r}"
            self._finish(held, TaskReport(task, Report.PLATFORM_ERROR, message))
        elif step.is_async:
            self._loop.start(lambda: self._await(step, held), lambda stop: _stoppable(held, stop))
        else:
            self._threads.start(lambda: self._finish(held, execution.run(step, task, context)))

    async def _await(self, step: Step, held: Held) -> None:
        self._finish(held, await execution.run_async(step, held.task, held.context))

    def _finish(self, held: Held, task_report: TaskReport | None) -> None:
        self._holding.finished(held, task_report)
        self._run_ready()

    def _beat(self, context: Context) -> None:
        self._holding.beat_soon(context.token, time.monotonic())

    # Speaking ---------------------------------------------------------------------------------------------------------

    def _speak(self) -> None:
        delays = Delays()
        last_words_until_s = 0.0
        while True:
            for held in self._holding.lost(time.monotonic()):
                self.counts.lost += 1
                self._give_up(held.task.token, "Its lease was lost: the engine did not hear of it in time")
            reports = self._holding.reports(time.monotonic(), REPORTS_MAX)
            if reports:
                self._say(reports, delays)
            elif self._quiet.is_set() and not self._holding.unsaid:
                return
            if self._quiet.is_set():
                last_words_until_s = last_words_until_s or time.monotonic() + LAST_WORDS_S
                if time.monotonic() > last_words_until_s:
                    _log.warning("%d results were not reported to the engine", self._holding.unsaid)
                    return
            self._wait_for_words()

    def _say(self, reports: Sequence[TaskReport], delays: "Delays") -> None:
        began_s = time.monotonic()
        try:
            answers = self._transport.report(reports)
        except TransportUnavailable as error:
            _log.warning("cannot report: %s", error)
            self._holding.keep(reports)
            self._stopped.wait(delays.next_s())
            return
        delays.reset()
        self._holding.said(reports, began_s)
        self.counts.done += sum(task_report.report is not Report.HEARTBEAT for task_report in reports)
        self._settle(reports, answers)

    def _settle(self, reports: Sequence[TaskReport], answers: Sequence[Answer]) -> None:
        by_token = {task_report.task.token: task_report for task_report in reports}
        for answer in answers:
            task_report = by_token.get(answer.token)
            if task_report is None or answer.accepted is not False:
                continue
            self.counts.refused += 1
            _log.warning("refused", extra={"fields": {**_fields(task_report.task), "reason": answer.reason}})
            self._give_up(answer.token, answer.reason or "The engine refused its report")

    def _wait_for_words(self) -> None:
        holding = self._holding
        with holding.changed:
            left_s = min(SPEAK_MAX_S, holding.next_beat_s() - time.monotonic())
            if left_s > 0 and not holding.unsaid and not self._quiet.is_set():
                holding.changed.wait(left_s)


class Delays:
    """How long to wait before trying again: twice as long each time, up to a limit."""

    def __init__(self) -> None:
        self._next_s = RETRY_MIN_S

    def next_s(self) -> float:
        now_s, self._next_s = self._next_s, min(self._next_s * 2, RETRY_MAX_S)
        return now_s

    def reset(self) -> None:
        self._next_s = RETRY_MIN_S


def unique_name() -> str:
    """A name that no other worker has: where it runs, and a few random digits."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def _stoppable(held: Held, stop: Callable[[], None]) -> None:
    """From now on the step can be interrupted; it is, if that was asked for a moment ago."""
    held.stop = stop
    if held.context.cancelled.is_set():
        stop()


def _fields(task: Task) -> dict[str, object]:
    return {"step": f"{task.workflow_id}/{task.instance_id}/{task.step_id}", "attempt": task.attempt, "type": task.type}
