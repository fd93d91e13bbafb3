"""The inbox is bounded, keeps the order, and tells everyone what became of their records."""

import threading
from concurrent.futures import Future

import pytest

from kapelle.topology.embedded import InboxLimits, QueueFull, Stopped
from kapelle.topology.embedded.inbox import Inbox, Parcel, Position, Promise, Receipt
from kapelle.topology.log import Place

PLACE = Place("kapelle.ticks", 0)
SMALL = InboxLimits(records_max=3, bytes_max=100, take_bytes_max=50)


def parcel(name: str, size_bytes: int = 1, receipt: Promise | None = None) -> Parcel:
    made = Parcel(receipt or Receipt(lambda positions: positions[0]))
    made.add(PLACE, (name.encode(), b"", ()), size_bytes)
    return made


def names(parcels: list[Parcel]) -> list[str]:
    return [(key or b"").decode() for each in parcels for key, _, _ in each.entries[PLACE]]


def test_parcels_are_taken_in_the_order_in_which_they_were_put() -> None:
    inbox = Inbox()
    inbox.put([parcel("a"), parcel("b")], 0)
    inbox.put([parcel("c")], 0)

    assert names(inbox.take(2)) == ["a", "b"]
    assert names(inbox.take(2)) == ["c"]
    assert inbox.take(2) == []


def test_a_full_inbox_refuses_in_time_and_tells_how_much_was_added() -> None:
    inbox = Inbox(SMALL)

    with pytest.raises(QueueFull, match="3 are waiting; 3 were added before") as refused:
        inbox.put([parcel(str(n)) for n in range(5)], 0.01)

    assert refused.value.added == 3
    assert len(inbox.take(10)) == 3


def test_bytes_fill_an_inbox_as_records_do() -> None:
    inbox = Inbox(SMALL)
    inbox.put([parcel("large", 100)], 0)

    with pytest.raises(QueueFull):
        inbox.put([parcel("small")], 0.01)


def test_one_take_is_bounded_in_bytes() -> None:
    inbox = Inbox(SMALL)
    inbox.put([parcel("a", 30), parcel("b", 30), parcel("c", 30)], 0)

    assert names(inbox.take(10)) == ["a", "b"]
    assert names(inbox.take(10)) == ["c"]


def test_whoever_waits_for_room_goes_on_when_there_is_some() -> None:
    inbox = Inbox(SMALL)
    putter = threading.Thread(target=inbox.put, args=([parcel(str(n)) for n in range(10)], 10.0))
    putter.start()
    taken: list[str] = []
    while len(taken) < 10:
        inbox.wait(1.0)
        taken += names(inbox.take(2))
    putter.join()

    assert taken == [str(n) for n in range(10)]


def test_a_parcel_wakes_the_one_who_sleeps() -> None:
    inbox = Inbox()
    sleeper = threading.Thread(target=inbox.wait, args=(60.0,))
    sleeper.start()
    inbox.put([parcel("a")], 0)
    sleeper.join(10.0)

    assert not sleeper.is_alive()


def test_a_wake_before_the_wait_is_not_lost() -> None:
    inbox = Inbox()
    inbox.wake()
    sleeper = threading.Thread(target=inbox.wait, args=(60.0,))
    sleeper.start()
    sleeper.join(10.0)

    assert not sleeper.is_alive()


def test_a_closed_inbox_takes_nothing_more_and_gives_out_what_it_has() -> None:
    inbox = Inbox()
    inbox.put([parcel("a")], 0)
    inbox.close(ValueError("a bug"))

    with pytest.raises(Stopped, match="it has stopped: ValueError: a bug") as stopped:
        inbox.put([parcel("b")], 0)

    assert isinstance(stopped.value.__cause__, ValueError)
    assert names(inbox.take(10)) == ["a"]


def test_closing_ends_the_wait_for_room() -> None:
    inbox = Inbox(SMALL)
    inbox.put([parcel(str(n)) for n in range(3)], 0)
    ended: Future[None] = Future()

    def put() -> None:
        try:
            inbox.put([parcel("late")], 60.0)
        except Stopped as error:
            ended.set_exception(error)

    threading.Thread(target=put).start()
    inbox.close(None)

    with pytest.raises(Stopped):
        ended.result(10.0)


def test_a_future_cancelled_in_time_withdraws_its_record() -> None:
    inbox = Inbox()
    kept, withdrawn = Receipt(lambda positions: positions), Receipt(lambda positions: positions)
    inbox.put([parcel("withdrawn", receipt=withdrawn), parcel("kept", receipt=kept)], 0)

    assert withdrawn.future.cancel()
    assert names(inbox.take(10)) == ["kept"]
    assert not kept.future.cancel()


def test_a_receipt_for_several_is_fulfilled_by_the_last() -> None:
    receipt = Receipt(lambda positions: positions)
    first, second = parcel("a", receipt=receipt), parcel("b", receipt=receipt)
    inbox = Inbox()
    inbox.put([first, second], 0)
    inbox.take(10)

    first.written({PLACE: 4})
    assert not receipt.future.done()
    second.written({PLACE: 5})
    assert receipt.future.result(0) == [Position(PLACE, 4), Position(PLACE, 5)]


def test_positions_are_told_in_the_order_of_publishing() -> None:
    other = Place("kapelle.ticks", 1)
    receipt = Receipt(lambda positions: positions)
    mixed = parcel("a", receipt=receipt)
    mixed.add(other, (b"b", b"", ()), 1)
    mixed.add(PLACE, (b"c", b"", ()), 1)
    receipt.take()

    mixed.written({PLACE: 7, other: 3})

    assert receipt.future.result(0) == [(PLACE, 7), (other, 3), (PLACE, 8)]


def test_a_refused_receipt_raises_at_whoever_asks() -> None:
    receipt = Receipt(lambda positions: positions[0])
    receipt.refuse(Stopped())
    receipt.refuse(Stopped())

    with pytest.raises(Stopped):
        receipt.future.result(0)
