"""The tasks of a worker: which ones wait, which ones run, whose lease is due, and how much room is left.

    waiting ─▶ running ─▶ (its report is in the outbox) ─▶ gone
        └─────────┴─────▶ given up: cancelled, or its lease was lost; its answer will be dropped

One lock protects all of it. Nothing here performs I/O.
"""

import heapq
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final

import msgspec

from kapelle.schemas.contracts import Criticality, Report, Task
from kapelle.worker.context import LOG_CHARS_MAX, Context
from kapelle.worker.transport import TaskReport

OUTBOX_MAX: Final = 1_000  # with more unsent reports than this, no task is taken
DONE_MAX: Final = 10_000
BEATS_PER_LEASE: Final = 3
BEAT_AGAIN_S: Final = 1.0  # a step that beats by itself is heard this often

RANKS: Final = {kind: rank for rank, kind in enumerate(Criticality)}  # the most important first


class Held:
    """One task in hand."""

    __slots__ = ("beat_at_s", "context", "heard_at_s", "is_running", "stop", "task")

    def __init__(self, task: Task, context: Context, now_s: float) -> None:
        self.task = task
        self.context = context
        self.is_running = False
        self.stop: Callable[[], None] | None = None  # how to interrupt it, if it can be
        self.heard_at_s = now_s  # when the engine last heard of it
        self.beat_at_s = now_s + self.lease_s / BEATS_PER_LEASE

    @property
    def lease_s(self) -> float:
        return self.task.lease_ms / 1000

    def give_up(self, reason: str) -> None:
        """Tell the step to stop, if it can be told."""
        self.context.cancel(reason)
        if self.stop is not None:
            self.stop()


class Holding:
    """All tasks in hand, and the reports about them that were not sent yet."""

    def __init__(self, concurrency: int, prefetch: int) -> None:
        self.changed = threading.Condition()
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._held: dict[str, Held] = {}
        self._done: dict[str, None] = {}  # the latest that were answered
        self._waiting: list[tuple[int, int, Held]] = []
        self._numbers = count()
        self._running = 0
        self._outbox: list[TaskReport] = []
        self._due_s = math.inf  # before this no heartbeat is due and no lease lost: nobody needs to look at all tasks

    def room(self) -> int:
        """How many tasks may be taken."""
        with self.changed:
            if len(self._outbox) > OUTBOX_MAX:
                return 0
            return max(0, self._concurrency + self._prefetch - self._running - len(self._waiting))

    def wait_for_room(self, wait_s: float) -> None:
        """Wait until something changes, if there is no room."""
        with self.changed:
            if self.room() == 0:
                self.changed.wait(wait_s)

    def add(self, held: Sequence[Held]) -> None:
        """Tasks that were taken wait for their turn. What comes twice is done once."""
        with self.changed:
            for entry in held:
                if entry.task.token in self._held or entry.task.token in self._done:
                    continue
                self._held[entry.task.token] = entry
                self._due_s = min(self._due_s, entry.beat_at_s)
                heapq.heappush(self._waiting, (RANKS[entry.task.criticality], next(self._numbers), entry))

    def ready(self) -> Iterator[Held]:
        """The tasks whose turn it is, the most important first. Each counts as running from now on."""
        while (entry := self._next()) is not None:
            yield entry

    def _next(self) -> Held | None:
        with self.changed:
            while self._waiting and self._running < self._concurrency:
                entry = heapq.heappop(self._waiting)[2]
                if entry.context.cancelled.is_set():
                    continue
                entry.is_running = True
                self._running += 1
                return entry
            return None

    def finished(self, held: Held, task_report: TaskReport | None) -> None:
        """A task has run. Its report is sent, unless the task was given up."""
        with self.changed:
            self._running -= 1
            if self._held.pop(held.task.token, None) is not None and task_report is not None:
                self._outbox.append(task_report)
                self._remember(held.task.token)
            self.changed.notify_all()

    def _remember(self, token: str) -> None:
        self._done[token] = None
        if len(self._done) > DONE_MAX:
            del self._done[next(iter(self._done))]

    def give_up(self, token: str, reason: str) -> Held | None:
        """A task is no longer wanted. It is forgotten here; its step is told, and keeps its place until it ends."""
        with self.changed:
            held = self._held.pop(token, None)
            if held is not None and not held.is_running:
                self._waiting = [each for each in self._waiting if each[2] is not held]
                heapq.heapify(self._waiting)
            self._outbox = [task_report for task_report in self._outbox if task_report.task.token != token]
            self.changed.notify_all()
        if held is not None:
            held.give_up(reason)
        return held

    def hand_back(self, message: str) -> list[Held]:
        """Give up all tasks, and report this to the engine, so that other workers get them."""
        with self.changed:
            held = list(self._held.values())
            self._held.clear()
            self._waiting.clear()
            self._outbox += [
                TaskReport(entry.task, Report.RETURNED, message, log=entry.context.said()) for entry in held
            ]
            self.changed.notify_all()
        for entry in held:
            entry.give_up(message)
        return held

    def beat_soon(self, token: str, now_s: float) -> None:
        """A step wants to be heard."""
        with self.changed:
            held = self._held.get(token)
            if held is not None:
                held.beat_at_s = min(held.beat_at_s, max(now_s, held.heard_at_s + BEAT_AGAIN_S))
                self._due_s = min(self._due_s, held.beat_at_s)
                self.changed.notify_all()

    def said(self, reports: Sequence[TaskReport], now_s: float) -> None:
        """The engine has received these reports."""
        with self.changed:
            for task_report in reports:
                held = self._held.get(task_report.task.token)
                if held is not None:
                    held.heard_at_s = now_s

    def reports(self, now_s: float, reports_max: int) -> list[TaskReport]:
        """What is to be said now: results, then heartbeats that are due."""
        with self.changed:
            reports, self._outbox = self._outbox[:reports_max], self._outbox[reports_max:]
            if now_s < self._due_s:
                return reports
            due = [entry for entry in self._held.values() if entry.beat_at_s <= now_s][: reports_max - len(reports)]
            for entry in due:
                entry.beat_at_s = now_s + entry.lease_s / BEATS_PER_LEASE
                reports.append(TaskReport(entry.task, Report.HEARTBEAT, log=entry.context.said()))
            self._due_s = min((entry.beat_at_s for entry in self._held.values()), default=math.inf)
            return reports

    def keep(self, reports: Sequence[TaskReport]) -> None:
        """Results that could not be said are said later. A heartbeat that could not be is soon another one's turn."""
        with self.changed:
            self._outbox[:0] = [task_report for task_report in reports if task_report.report is not Report.HEARTBEAT]
            for task_report in reports:
                if task_report.report is Report.HEARTBEAT:
                    self._keep_beat(task_report)

    def _keep_beat(self, beat: TaskReport) -> None:
        """What its step wrote goes with the next heartbeat, or with the result if that is there by now."""
        token = beat.task.token
        held = self._held.get(token)
        if held is not None:
            held.beat_at_s = held.heard_at_s
            self._due_s = min(self._due_s, held.beat_at_s)
        if not beat.log:
            return
        if held is not None:
            held.context.unsaid(beat.log)
            return
        for at, task_report in enumerate(self._outbox):
            if task_report.task.token == token:
                log = f"{beat.log}\n{task_report.log}".rstrip("\n")[-LOG_CHARS_MAX:]
                self._outbox[at] = msgspec.structs.replace(task_report, log=log)

    def lost(self, now_s: float) -> list[Held]:
        """The tasks of which the engine has not heard for as long as their lease. A heartbeat was due before that."""
        with self.changed:
            if now_s < self._due_s:
                return []
            return [entry for entry in self._held.values() if now_s - entry.heard_at_s > entry.lease_s]

    def next_beat_s(self) -> float:
        """When the next heartbeat may be due: not later than it is."""
        with self.changed:
            return self._due_s

    @property
    def unsaid(self) -> int:
        with self.changed:
            return len(self._outbox)

    @property
    def in_hand(self) -> int:
        with self.changed:
            return len(self._held)
