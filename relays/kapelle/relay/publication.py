"""Publishing for relays: an answer for each record, and a failure is an answer too."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from kapelle.processors.streams import Stream
from kapelle.relay.patience import Patience, Unanswered
from kapelle.schemas.contract import Contract
from kapelle.topology.journal import JournalUnavailable, Position

T = TypeVar("T")

Sent = Future[Position]


class Publisher(Protocol):
    """Whoever takes records, as every journal does."""

    def publish(self, stream: Stream, key: str, value: Contract) -> "Future[Position]": ...


def sent(publish: Callable[[], Sent], *failures: type[Exception]) -> Sent:
    """What was sent. A record that was not even taken has failed like one that was not acknowledged."""
    try:
        return publish()
    except failures as error:
        failed = Sent()
        failed.set_exception(error)
        return failed


def failure(answer: Sent, patience: Patience, *failures: type[Exception]) -> Exception | None:
    """Wait for the answer to a record: why it failed, or None once it is acknowledged."""
    try:
        patience.wait(answer)
    except failures as error:
        return error
    except Unanswered as error:
        return JournalUnavailable("keep a record", error)
    return None


def not_acknowledged(
    answers: Iterable[tuple[T, Sent]], patience: Patience, *failures: type[Exception]
) -> list[tuple[T, Exception]]:
    """Wait for all answers: what failed, and why, in the order of the answers."""
    outcomes = [(record, failure(answer, patience, *failures)) for record, answer in answers]
    return [(record, reason) for record, reason in outcomes if reason is not None]
