"""Views whose processes are killed at random while the engine works: the same rows as those of a view made at once."""

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kapelle.processors.wiring import RUN_COMMANDS, TASKS, WORKFLOW_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry, KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from kapelle.views import Views
from kapelle.views.progress import ends_of
from kapelle.views.projection import FOLLOWED
from tests.integration.api.folding_process import PARTITIONS
from tests.integration.api.places import CALL_S, definition, processors, step, until, written
from tests.integration.api.test_killed_views import killed_after
from tests.support.broker import Broker
from tests.unit.views.histories import dump
from tests.unit.views.test_folding import folded

KILLS = 8
AT_LEAST = 120  # instances that the load starts, whatever the kills take
# What a task is told; of three, one is told nothing, so that no lease can run out while views are compared.
REPORTS = ((c.Report.STARTED, c.Report.SUCCEEDED), (c.Report.FATAL_ERROR,), ())
WORKFLOWS = ("one", "two")


class Load:
    """Starts instances and answers their tasks until it is told to stop."""

    def __init__(self, journal: KafkaJournal) -> None:
        self._journal = journal
        self._enough = threading.Event()
        self.started = 0
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._start, self._answer)]

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
            until(lambda: self.started >= AT_LEAST, f"{AT_LEAST} instances")
        finally:
            self._enough.set()
            for thread in self._threads:
                thread.join(60)

    def _start(self) -> None:
        while not self._enough.wait(0.02):
            start = c.StartInstances("ann", (c.Start(f"start-{self.started}"),))
            self._journal.publish(WORKFLOW_COMMANDS, WORKFLOWS[self.started % 2], start).result(60)
            self.started += 1

    def _answer(self) -> None:
        follower = self._journal.follow([TASKS], {})
        while not self._enough.is_set():
            for entry in follower.take(100, 0.25):
                if isinstance(entry.value, c.Task):
                    task = entry.value
                    key = run_key(task.workflow_id, task.instance_id)
                    for report in REPORTS[task.instance_id % 3]:
                        self._journal.publish(RUN_COMMANDS, key, c.ReportTask(task.token, task.step_id, "w", report))
        follower.close()


def rows_of(journal: KafkaJournal, directory: Path | None) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a view that has come to the end of the log."""
    views, ends = Views(journal, directory), ends_of(journal)

    def is_there() -> bool:
        views.folding.step(0.25)
        return all(views.watermark[point] >= end for point, end in ends.items())

    until(is_there, "the view to come to the end of the log")
    found = dump(views.database)
    views.close()
    return found


def history_of(journal: KafkaJournal) -> dict[str, list[tuple[object, ...]]]:
    """The same, by folding the history one partition after the other, without a view."""
    ends, follower = ends_of(journal), journal.follow(FOLLOWED, {})
    entries: list[Entry] = []

    def is_read() -> bool:
        entries.extend(follower.take(1_000, 0.25))
        return all(follower.positions[point] >= end for point, end in ends.items())

    until(is_read, "the whole history")
    follower.close()
    return folded(sorted(entries, key=lambda one: (one.stream, one.partition, one.offset)))


def test_views_that_are_killed_under_load_equal_new_ones_and_the_fold_of_the_history(
    broker: Broker, tmp_path: Path
) -> None:
    shape = topology(prefix=f"killed-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers, call_timeout_s=CALL_S)
    Topics(shape, settings).apply()
    until(lambda: not Topics(shape, settings).plan(), "the topics to be there")
    chance, log = random.Random(9), f"{broker.bootstrap_servers} {shape.prefix}"

    with processors(broker, shape.prefix, tmp_path, partitions=PARTITIONS):
        journal = KafkaJournal(shape, settings)
        for name in WORKFLOWS:
            pushed = definition(name, step("a", "NoOp", "b"), step("b", "python"), run_strategy="PARALLEL")
            journal.publish(WORKFLOW_COMMANDS, name, c.PushVersion(f"push-{name}", "ann", written(pushed))).result(60)
        load = Load(journal)
        with load.running():
            kills = [killed_after(chance.randrange(1, 4), log, tmp_path / "views") for _ in range(KILLS)]
        ends = until(lambda: _settled(journal), "the engine to come to rest")
        survivor, fresh, history = rows_of(journal, tmp_path / "views"), rows_of(journal, None), history_of(journal)
        assert ends_of(journal) == ends
        journal.close()

    assert kills == [False] * KILLS
    assert len(survivor["instances"]) == load.started >= AT_LEAST
    assert survivor == fresh == history


def _settled(journal: KafkaJournal) -> dict[tuple[str, int], int] | None:
    """The ends of the log, if they stay what they are for a while."""
    before = ends_of(journal)
    follower = journal.follow(FOLLOWED, before)
    came = [follower.take(1, 0.25) for _ in range(12)]
    follower.close()
    after = ends_of(journal)
    return after if before == after and not any(came) else None
