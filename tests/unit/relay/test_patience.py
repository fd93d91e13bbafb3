"""Answers are waited for as long as they take, until somebody says to stop: then all of them together for a moment."""

import threading
from concurrent.futures import Future

import pytest

from kapelle.relay.patience import Patience, Unanswered, apart
from kapelle.relay.publication import Sent, failure, not_acknowledged
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.topology.journal import JournalUnavailable, Position
from kapelle.topology.log import Place

ENOUGH_S = 30.0


def test_an_answer_that_is_there_is_given_though_we_are_told_to_stop() -> None:
    answer: Future[str] = Future()
    answer.set_result("there")

    assert Patience(lambda: True, grace_s=0).wait(answer) == "there"


def test_an_answer_is_waited_for_while_nobody_says_to_stop() -> None:
    answer: Future[str] = Future()
    looks = []

    def stopped() -> bool:
        looks.append(1)
        if len(looks) == 3:
            answer.set_result("late")
        return False

    assert Patience(stopped).wait(answer) == "late"


def test_nobody_waits_for_long_once_told_to_stop() -> None:
    patience = Patience(lambda: True, grace_s=0)

    for _ in range(3):
        with pytest.raises(Unanswered, match="Stopped while waiting for an answer"):
            patience.wait(Future())


def test_what_an_answer_raises_is_raised_and_a_time_out_of_its_own_too() -> None:
    answer: Future[str] = Future()
    answer.set_exception(TimeoutError("its own"))

    with pytest.raises(TimeoutError, match="its own"):
        Patience().wait(answer)


def test_work_that_is_done_apart_answers_or_raises() -> None:
    def fails() -> AnnounceSignal:
        raise ValueError("as told")

    assert Patience().wait(apart(lambda: 7)) == 7
    with pytest.raises(ValueError, match="as told"):
        Patience().wait(apart(fails))


def test_work_that_never_ends_keeps_nobody_from_leaving() -> None:
    never, begun = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        never.wait(ENOUGH_S)

    answer = apart(hangs)
    assert begun.wait(ENOUGH_S)
    with pytest.raises(Unanswered):
        Patience(lambda: True, grace_s=0).wait(answer)
    never.set()


def test_a_record_that_was_not_answered_counts_as_not_kept() -> None:
    found = failure(Sent(), Patience(lambda: True, grace_s=0), ValueError)

    assert isinstance(found, JournalUnavailable)


class Away(Exception):
    """Whoever is to take something does not answer now."""


def test_what_is_not_taken_is_delivered_again_after_a_wait() -> None:
    offers, waits = [], list[Exception]()

    def deliver() -> None:
        offers.append(1)
        if len(offers) < 3:
            raise Away

    assert Patience().delivered(deliver, Away, waits.append)
    assert (len(offers), len(waits)) == (3, 2)


def test_nothing_is_delivered_again_once_we_are_told_to_stop() -> None:
    waits = list[Exception]()

    def deliver() -> None:
        raise Away

    assert not Patience(lambda: True, grace_s=ENOUGH_S).delivered(deliver, Away, waits.append)
    assert waits == []


def test_an_error_that_is_not_about_being_away_is_raised() -> None:
    def deliver() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        Patience().delivered(deliver, Away, lambda _: None)


def test_a_delivery_that_hangs_is_given_up_when_we_are_told_to_stop() -> None:
    release = threading.Event()
    try:
        assert not Patience(lambda: True, grace_s=0.0).delivered(release.wait, Away, lambda _: None)
    finally:
        release.set()


def test_of_several_records_those_that_failed_are_told_with_their_reasons() -> None:
    taken: Sent = Future()
    taken.set_result(Position(Place("topic", 0), 7))
    lost: Sent = Future()
    lost.set_exception(JournalUnavailable("keep a record", "it is away"))

    failed = not_acknowledged([("a", taken), ("b", lost)], Patience(), JournalUnavailable)

    assert [(name, type(reason)) for name, reason in failed] == [("b", JournalUnavailable)]
