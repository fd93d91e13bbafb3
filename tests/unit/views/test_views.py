"""The view as others use it: waiting for news, going on after a log that was away, pages and what they show."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kapelle.processors.streams import Stream
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report
from kapelle.testing.engine import Engine
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, Entry, Follower, JournalUnavailable, Point
from kapelle.topology.page import topology
from kapelle.views import BadCursor, ViewFailed, Views
from kapelle.views.news import Noticeboard
from kapelle.views.projection import FOLLOWED
from kapelle.views.queries import instances, steps, tasks, workflows
from kapelle.views.queries.instance_lists import Filters, browse
from kapelle.views.queries.pages import PageRequest, cursor_of, place_of
from tests.unit.views.histories import TYPE, definition, dump, step, used_engine, view_of


class StumblingFollower:
    """Reads, and then fails to give what it has read."""

    def __init__(self, inner: Follower, journal: "StumblingJournal") -> None:
        self._inner = inner
        self._journal = journal

    @property
    def positions(self) -> Mapping[Point, int]:
        return self._inner.positions

    def take(self, records_max: int, wait_s: float) -> Sequence[Entry]:
        entries = self._inner.take(records_max, wait_s)
        if entries and self._journal.failures:
            raise self._journal.failures.pop()
        return entries

    def close(self) -> None:
        self._inner.close()


class StumblingJournal(EmbeddedJournal):
    """A journal whose followers fail so often."""

    failures: list[Exception]

    def follow(self, streams: Sequence[Stream], starts: Mapping[Point, int]) -> StumblingFollower:  # type: ignore[override]
        return StumblingFollower(super().follow(streams, starts), self)


def test_a_log_that_was_away_is_read_on_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.views.fold.AGAIN_S", 0.0)
    engine = used_engine(2)
    journal = StumblingJournal(engine.runtime)
    journal.failures = [JournalUnavailable("be read", "the broker is away") for _ in range(3)]

    with Views(journal, batch_records=50) as views:
        assert views.catch_up(30)
        found = dump(views.database)

    assert journal.failures == []
    assert found == dump(view_of(engine).database)


def test_any_other_failure_stops_the_view_and_is_told_to_all_who_wait() -> None:
    engine = used_engine(2)
    journal = StumblingJournal(engine.runtime)
    journal.failures = [OSError("no space left")]

    with Views(journal) as views, pytest.raises(ViewFailed, match="no space left"):
        views.wait_for("never", 30)

    assert isinstance(views.failure, OSError)


def test_waiting_ends_with_the_news_or_with_the_time(tmp_path: Path) -> None:
    with EmbeddedRuntime(topology(partitions=1), tmp_path) as runtime, ThreadPoolExecutor(1) as pool:
        runtime.start()
        with Views(EmbeddedJournal(runtime)) as views:
            waiting = pool.submit(views.wait_for, "request-1", 30)
            runtime.publish(WORKFLOW_COMMANDS, "etl", c.DeactivateWorkflow("request-1", "ann"))
            found = waiting.result(30)
            nothing = views.wait_for("request-2", 0.0)

    assert found is not None
    assert (found[0].workflow_id, found[0].kind, found[0].body["refusal"]) == ("etl", "CommandRefused", "NOT_FOUND")
    assert nothing is None


def test_offsets_are_waited_for() -> None:
    engine = Engine()
    engine.push(definition("etl"))
    journal = EmbeddedJournal(engine.runtime)
    ends = {(stream.name, n): end for stream in FOLLOWED for n, end in journal.ends(stream).items()}

    with Views(journal) as views:
        reached = views.wait_until(ends, 30)
        beyond = views.wait_until({("workflows.events", 0): 1_000}, 0.0)

    assert reached
    assert not beyond


def test_only_those_who_wait_for_it_are_woken() -> None:
    board, woken = Noticeboard(), list[str]()

    with (
        board.subscribed(["a", "b"], lambda: woken.append("one")),
        board.subscribed(["c"], lambda: woken.append("two")),
    ):
        board.tell({"a", "b"})
        board.tell({"nobody"})
        first = list(woken)
        board.tell_all()
    board.tell({"a", "c"})

    assert first == ["one"]
    assert woken == ["one", "one", "two"]


def test_readers_see_whole_transactions_while_others_are_written(tmp_path: Path) -> None:
    engine = used_engine(3, operations=60)
    views = Views(EmbeddedJournal(engine.runtime), tmp_path, batch_records=5)
    torn: list[tuple[int, int]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with views.database.reading() as connection:
                one = connection.execute("SELECT SUM(next) FROM offsets").fetchone()[0]
                connection.execute("SELECT COUNT(*) FROM timeline").fetchone()
                other = connection.execute("SELECT SUM(next) FROM offsets").fetchone()[0]
            if one != other:
                torn.append((one, other))

    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            pool.submit(read)
        while views.folding.step():
            pass
        done.set()
    views.close()

    assert torn == []


# Queries ------------------------------------------------------------------------------------------------------------


def test_pages_stay_where_they_are_while_instances_come() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a"), run_strategy="PARALLEL"))
    for _ in range(5):
        engine.start("etl")
    views = view_of(engine)
    first = views.read(browse, PageRequest(2))
    for _ in range(3):
        engine.start("etl")
    while views.folding.step():
        pass

    second = views.read(browse, PageRequest(2, first["page_info"]["end_cursor"]))

    shown = [[one["workflow_instance_id"] for one in page["elements"]] for page in (first, second)]
    assert shown == [[5, 4], [3, 2]]
    assert second["page_info"]["start_index"] == 6


def test_cursors_of_other_lists_are_refused() -> None:
    cursor = cursor_of(("etl",))

    assert place_of(cursor, tuple[str]) == ("etl",)
    for wrong in ("", "é", "AAAA", cursor + "x", "W" * 2_000):
        with pytest.raises(BadCursor):
            place_of(wrong, tuple[int])


def test_the_view_agrees_with_the_engine_on_every_status() -> None:
    engine = used_engine(5, operations=80)
    views = view_of(engine)

    page = views.read(browse, PageRequest(200))

    assert page["total_count"] is not None
    assert page["total_count"] > 5
    for found in page["elements"]:
        state = engine.state("workflows", found["workflow_id"])
        row = state.instances.get((found["workflow_id"], found["workflow_instance_id"]))
        assert (found["workflow_run_id"], found["status"]) == (row.run_id, row.status)
        key = f"{found['workflow_id']}/{found['workflow_instance_id']}"
        rows = engine.state("runs", key).steps.prefix((key,))
        known = {step_id: (one.run_id, one.attempt, one.status) for (_, step_id), one in rows}
        listed = views.read(steps.latest_of_each, found["workflow_id"], found["workflow_instance_id"])
        shown = {one["step_id"]: (one["workflow_run_id"], one["step_attempt_id"], one["status"]) for one in listed}
        assert {step_id: shown[step_id] for step_id in known} == known


def test_tasks_wait_until_a_worker_has_them_or_nobody_needs_them() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE), run_strategy="PARALLEL"))
    runs = [engine.start("etl") for _ in range(3)]
    views = view_of(engine)
    before = views.read(tasks.waiting, [TYPE, "other"], 10)
    engine.task(runs[0], "a").begin("w1")
    runs[1].stop(Action.STOP, "enough")
    while views.folding.step():
        pass

    after = views.read(tasks.waiting, [TYPE], 10)
    without = views.read(tasks.waiting, [TYPE], 10, {after[0].token})

    assert [task.instance_id for task in before] == [1, 2, 3]
    assert [task.instance_id for task in after] == [3]
    assert without == []
    found = views.read(tasks.attempts_by, [task.token for task in before])
    assert [found[task.token].status for task in before] == ["RUNNING", "STOPPED", "STARTING"]


def test_a_word_that_was_refused_is_kept_with_its_reason() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE)))
    task = engine.task(engine.start("etl"), "a")
    task.begin("w1")
    task.say(Report.SUCCEEDED, worker="w2")
    views = view_of(engine)

    found = views.read(tasks.refusals, [task.task.token], "w2")

    assert found[task.task.token][0][0] == "SUCCEEDED"
    assert "w1" in found[task.task.token][0][1]
    assert views.read(tasks.refusals, [task.task.token], "w1") == {}


def test_a_deleted_workflow_is_hidden_with_all_that_it_had() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a")))
    engine.start("etl")
    engine.send(WORKFLOW_COMMANDS, "etl", c.DeleteWorkflow(engine.request_id(), "ann"))
    views = view_of(engine)

    assert views.read(workflows.workflow, "etl") is None
    assert views.read(instances.run, "etl", 1) is None
    assert views.read(browse, PageRequest())["total_count"] == 0
    engine.push(definition("etl", step("a")))
    engine.start("etl")
    while views.folding.step():
        pass
    page = views.read(browse, PageRequest(), Filters(workflow_id="etl"))
    assert [one["workflow_instance_id"] for one in page["elements"]] == [2]
