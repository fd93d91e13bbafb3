"""What a worker has in hand: order, room, leases."""

from typing import Any

import pytest

from kapelle.schemas.contracts import Criticality, Report
from kapelle.worker.context import LOG_CHARS_MAX, Context
from kapelle.worker.held_tasks import OUTBOX_MAX, Held, Holding
from kapelle.worker.transport import TaskReport
from tests.unit.worker.samples import task


def held(number: int, *, now_s: float = 0.0, **fields: Any) -> Held:
    given = task(number, **fields)
    return Held(given, Context(given), now_s)


def test_the_most_important_task_is_run_first_and_the_older_of_two() -> None:
    holding = Holding(2, prefetch=4)
    order = [Criticality.LOW, Criticality.MEDIUM, Criticality.CRITICAL, Criticality.MEDIUM]

    holding.add([held(n, criticality=c) for n, c in enumerate(order)])
    first = [one.task.instance_id for one in holding.ready()]
    holding.finished(held(2), None)
    holding.finished(held(1), None)
    then = [one.task.instance_id for one in holding.ready()]

    assert (first, then) == ([2, 1], [3, 0])


def test_there_is_room_for_what_can_run_and_what_may_wait() -> None:
    holding = Holding(2, prefetch=1)
    one = held(1)

    assert holding.room() == 3
    holding.add([one])
    assert (holding.room(), len(list(holding.ready())), holding.room()) == (2, 1, 2)
    holding.finished(one, None)
    assert holding.room() == 3


def test_with_too_much_unsaid_nothing_is_taken() -> None:
    holding = Holding(2, prefetch=0)
    words = [TaskReport(task(n), Report.SUCCEEDED) for n in range(OUTBOX_MAX + 1)]

    holding.keep(words)

    assert holding.room() == 0


def test_a_task_that_was_given_up_keeps_its_place_until_its_step_ends_and_its_answer_is_dropped() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1)
    stopped: list[int] = []
    one.stop = lambda: stopped.append(1)
    holding.add([one])
    list(holding.ready())

    holding.give_up("token-1", "stopped by ann")

    assert (holding.room(), holding.in_hand, stopped, one.context.cancel_reason) == (0, 0, [1], "stopped by ann")
    holding.finished(one, TaskReport(one.task, Report.SUCCEEDED))
    assert (holding.room(), holding.reports(0.0, 10)) == (1, [])


def test_a_task_that_is_given_up_while_it_waits_is_never_run() -> None:
    holding = Holding(1, prefetch=2)
    holding.add([held(1), held(2)])

    holding.give_up("token-1", "stopped")

    assert [one.task.instance_id for one in holding.ready()] == [2]


def test_a_result_that_was_not_said_yet_is_dropped_with_its_task() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1)
    holding.add([one])
    list(holding.ready())
    holding.finished(one, TaskReport(one.task, Report.SUCCEEDED))

    holding.give_up("token-1", "stopped")

    assert holding.reports(0.0, 10) == []


def test_a_heartbeat_is_due_when_a_third_of_the_lease_has_gone_by() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1, lease_ms=3_000)
    one.context.log("half")
    holding.add([one])

    assert holding.reports(0.9, 10) == []
    assert holding.reports(1.0, 10) == [TaskReport(one.task, Report.HEARTBEAT, log="half")]
    assert (holding.reports(1.9, 10), holding.next_beat_s()) == ([], 2.0)


def test_results_are_said_before_heartbeats_and_no_more_than_asked_for() -> None:
    holding = Holding(3, prefetch=0)
    many = [held(n) for n in range(3)]
    holding.add(many)
    list(holding.ready())
    holding.finished(many[2], TaskReport(many[2].task, Report.SUCCEEDED))

    said = holding.reports(100.0, 2)

    assert [(word.task.instance_id, word.report) for word in said] == [(2, Report.SUCCEEDED), (0, Report.HEARTBEAT)]


def test_a_lease_is_lost_when_the_engine_has_not_heard_for_as_long() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1, lease_ms=3_000)
    holding.add([one])
    beat = TaskReport(one.task, Report.HEARTBEAT)

    holding.said([beat], 2.0)
    assert holding.lost(5.0) == []
    assert holding.lost(5.1) == [one]


def test_a_heartbeat_that_could_not_be_said_is_due_again_and_a_result_comes_first() -> None:
    holding = Holding(2, prefetch=0)
    one, two = held(1, lease_ms=3_000), held(2)
    holding.add([one, two])
    list(holding.ready())
    holding.finished(two, TaskReport(two.task, Report.SUCCEEDED))

    words = holding.reports(1.0, 10)
    holding.keep(words)

    assert [word.report for word in holding.reports(1.0, 10)] == [Report.SUCCEEDED, Report.HEARTBEAT]


def test_a_step_that_beats_by_itself_is_heard_once_a_second() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1)
    holding.add([one])
    holding.said([TaskReport(one.task, Report.HEARTBEAT)], 5.0)

    holding.beat_soon("token-1", 5.2)

    assert holding.next_beat_s() == 6.0


def test_what_a_heartbeat_could_not_say_goes_with_the_next_one() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1, lease_ms=3_000)
    holding.add([one])
    one.context.log("first")
    unheard = holding.reports(1.0, 10)
    one.context.log("second")

    holding.keep(unheard)

    assert [word.log for word in holding.reports(1.0, 10)] == ["first\nsecond"]


@pytest.mark.parametrize(("written", "said"), [("second", "first\nsecond"), ("", "first")])
def test_what_a_heartbeat_could_not_say_goes_with_a_result_that_came_meanwhile(written: str, said: str) -> None:
    holding = Holding(1, prefetch=0)
    one = held(1, lease_ms=3_000)
    holding.add([one])
    list(holding.ready())
    one.context.log("first")
    unheard = holding.reports(1.0, 10)
    holding.finished(one, TaskReport(one.task, Report.SUCCEEDED, log=written))

    holding.keep(unheard)

    assert [(word.report, word.log) for word in holding.reports(1.0, 10)] == [(Report.SUCCEEDED, said)]


def test_what_is_said_late_is_no_longer_than_what_is_said_at_once() -> None:
    holding = Holding(1, prefetch=0)
    one = held(1, lease_ms=3_000)
    holding.add([one])
    list(holding.ready())
    one.context.log("first")
    unheard = holding.reports(1.0, 10)
    holding.finished(one, TaskReport(one.task, Report.SUCCEEDED, log="x" * LOG_CHARS_MAX))

    holding.keep(unheard)

    assert [word.log for word in holding.reports(1.0, 10)] == ["x" * LOG_CHARS_MAX]


def test_what_is_handed_back_is_returned_with_what_its_step_wrote() -> None:
    holding = Holding(1, prefetch=1)
    holding.add([held(1), held(2)])
    for one in holding.ready():
        one.context.log("half")

    back = holding.hand_back("the worker was stopped")

    assert [one.context.cancelled.is_set() for one in back] == [True, True]
    assert [(word.report, word.message, word.log) for word in holding.reports(0.0, 10)] == [
        (Report.RETURNED, "the worker was stopped", "half"),
        (Report.RETURNED, "the worker was stopped", ""),
    ]
    assert list(holding.ready()) == []


def test_a_task_that_comes_twice_is_done_once() -> None:
    holding = Holding(2, prefetch=0)

    holding.add([held(1)])
    holding.add([held(1)])

    assert len(list(holding.ready())) == 1


def test_a_task_that_comes_again_after_it_was_answered_is_not_done_again() -> None:
    holding = Holding(2, prefetch=0)
    one = held(1)
    holding.add([one])
    list(holding.ready())
    holding.finished(one, TaskReport(one.task, Report.SUCCEEDED))

    holding.add([held(1)])

    assert list(holding.ready()) == []
