"""The assignment of tasks to workers. The engine decides, and only tasks that it has granted are handed out.

1. A poll takes waiting tasks from the view, none that another poll of this node is after.
2. It says STARTED for each in the name of its worker, and waits for what the engine makes of it.
3. What is RUNNING by that worker now is handed out, under its lease. The rest went to others, or is no longer wanted.

A word that the engine has not answered in time may still be granted. It is remembered, and handed out with the next
poll of that worker; if none comes, the lease runs out and another worker gets the task.
"""

import asyncio
import sqlite3
import time
from collections.abc import Collection, Sequence
from typing import Final, TypeVar

import msgspec

from kapelle.api.context import Context
from kapelle.api.shared_queries import SharedQueries
from kapelle.processors.wiring import RUN_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report, StepStatus
from kapelle.views.projection.news import CANCELLATIONS, run_news, task_news
from kapelle.views.queries import tasks as queries
from kapelle.views.queries.tasks import TaskFound

FORGET_S: Final = 10 * 60.0  # a claim that nobody answers is forgotten: its lease is over by then
REMEMBERED_MAX: Final = 10_000
LOOKED_AT: Final = 200  # waiting tasks that one look at the view brings

K = TypeVar("K")


class Claim(msgspec.Struct, frozen=True):
    """A task that a worker asked the engine for."""

    task: TaskFound
    worker: str
    at_s: float


class Poll(msgspec.Struct, frozen=True):
    """What a worker can take, and how long it will wait."""

    worker: str
    types: tuple[str, ...]
    limit: int
    wait_s: float


class Claims:
    """The claims of one API node that are not settled yet."""

    def __init__(self, here: Context) -> None:
        self._here = here
        self._looks = SharedQueries(here)
        self._open: dict[str, Claim] = {}  # by token: asked for, not answered
        self._given: dict[str, None] = {}  # tokens that were handed out: a look at the view may be older than that
        self._told: dict[tuple[str, str], None] = {}  # (worker, token) of cancellations that were told

    async def poll(self, poll: Poll) -> tuple[list[TaskFound], list[str]]:
        """Tasks that are the worker's now, and the tokens of those that it should stop."""
        until = time.monotonic() + poll.wait_s
        while True:
            mine = self._open_of(poll.worker)
            with self._here.hearing(_news(poll, mine)) as news:
                tasks = await self._claim(poll)
                cancelled = await self._untold(poll.worker)
                if tasks or cancelled:
                    return tasks, cancelled
                if self._open_of(poll.worker) != mine:
                    continue  # there are others to hear of now
                if not await self._here.heard(news, until):
                    return [], []

    def _open_of(self, worker: str) -> list[Claim]:
        return [claim for claim in self._open.values() if claim.worker == worker]

    async def _claim(self, poll: Poll) -> list[TaskFound]:
        """Ask the engine for what waits, and give what it granted: of these, and of what was asked for before."""
        here = self._here
        self._forget()
        scanned = LOOKED_AT + len(self._open)
        tasks = await self._looks.ask(poll.types, lambda connection: queries.waiting(connection, poll.types, scanned))
        # Another poll may have been quicker, and may have got its answer since we looked.
        free = [task for task in tasks if task.token not in self._open and task.token not in self._given]
        chosen = free[: poll.limit]
        for task in chosen:
            self._open[task.token] = Claim(task, poll.worker, time.monotonic())
        if chosen:
            await self._say_started(chosen, poll.worker)
        mine = self._open_of(poll.worker)
        if not mine:
            return []
        fresh = {task.token for task in chosen}
        waited_for = [claim for claim in mine if claim.task.token in fresh]
        await self._await_answers(waited_for)
        settled = await here.read(self._settled, mine)
        for token in settled:
            self._open.pop(token, None)
        return self._handed_out([claim.task for claim in mine if settled.get(claim.task.token)])

    def _handed_out(self, tasks: list[TaskFound]) -> list[TaskFound]:
        """Each task once: of two polls of one worker that wait for the same answer, the first one gets it."""
        fresh = [task for task in tasks if task.token not in self._given]
        remember(self._given, [task.token for task in fresh])
        return fresh

    async def _say_started(self, tasks: Sequence[TaskFound], worker: str) -> None:
        reports = [
            self._here.publish(
                RUN_COMMANDS,
                run_key(task.workflow_id, task.instance_id),
                c.ReportTask(task.token, task.step_id, worker, Report.STARTED),
            )
            for task in tasks
        ]
        results = await asyncio.gather(*reports, return_exceptions=True)
        failed = [
            (task, result) for task, result in zip(tasks, results, strict=True) if isinstance(result, BaseException)
        ]
        for task, _ in failed:
            self._open.pop(task.token, None)
        self._here.views.board.tell({task_news(task.type) for task, _ in failed})
        if len(failed) == len(tasks):
            raise failed[0][1]

    async def _await_answers(self, claims: Sequence[Claim]) -> None:
        """Wait until the engine has answered all of these, or for as long as a poll may."""
        if not claims:
            return
        news = {run_news(claim.task.workflow_id, claim.task.instance_id) for claim in claims}

        def look(connection: sqlite3.Connection) -> bool | None:
            return len(self._settled(connection, claims)) == len(claims) or None

        await self._here.seen(news, look, self._here.settings.claim_ms / 1000)

    def _settled(self, connection: sqlite3.Connection, claims: Sequence[Claim]) -> dict[str, bool]:
        """For each claim that the engine has answered, whether it was granted."""
        if not claims:
            return {}
        tokens = [claim.task.token for claim in claims]
        attempts = queries.attempts_by(connection, tokens)
        refused = queries.refusals(connection, tokens, claims[0].worker)
        settled: dict[str, bool] = {}
        for claim in claims:
            token = claim.task.token
            attempt = attempts.get(token)
            if attempt is not None and attempt.status != StepStatus.STARTING:
                settled[token] = attempt.status == StepStatus.RUNNING and attempt.worker == claim.worker
            elif any(report == Report.STARTED for report, _ in refused.get(token, ())):
                settled[token] = False
        return settled

    def _forget(self) -> None:
        before_s = time.monotonic() - FORGET_S
        for token in [token for token, claim in self._open.items() if claim.at_s < before_s]:
            del self._open[token]

    # What is no longer wanted -----------------------------------------------------------------------------------------

    async def _untold(self, worker: str) -> list[str]:
        """The tokens of a worker that were cancelled and that it was not told of yet."""
        return await self.cancelled_of(worker, ())

    async def cancelled_of(self, worker: str, tokens: Collection[str]) -> list[str]:
        """Of these tokens, and of those that the worker was not told of yet, the ones that were cancelled."""
        cancellations = await self._looks.ask(CANCELLATIONS, self._cancelled)
        mine = [token for whose, token in cancellations if whose == worker]
        wanted = [token for token in mine if token in tokens or (worker, token) not in self._told]
        self.tell(worker, wanted)
        return wanted

    def _cancelled(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        since_ms = time.time_ns() // 1_000_000 - self._here.settings.cancelled_ms
        return queries.cancelled(connection, since_ms)

    def tell(self, worker: str, tokens: Collection[str]) -> None:
        """Remember what a worker was told."""
        remember(self._told, [(worker, token) for token in tokens])


def _news(poll: Poll, mine: Sequence[Claim]) -> set[str]:
    """What a worker that waits wants to hear of."""
    tasks = {task_news(type_) for type_ in poll.types}
    answers = {run_news(claim.task.workflow_id, claim.task.instance_id) for claim in mine}
    return tasks | answers | {CANCELLATIONS}


def remember(known: dict[K, None], names: Collection[K]) -> None:
    """Add names, and forget the oldest of very many."""
    known.update(dict.fromkeys(names))
    while len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]
