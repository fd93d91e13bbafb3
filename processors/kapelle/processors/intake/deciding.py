"""Decisions on records of the public topic of signals. There are no events, so nothing is applied."""

from collections.abc import Callable, Iterator

from kapelle.processors.effects import Effect, Send, SetAside
from kapelle.processors.intake.forms import NotASignal, checked, read
from kapelle.processors.intake.processor import intake
from kapelle.processors.intake.tables import Intake
from kapelle.processors.messages import Foreign, Message
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import contracts as c


@intake.decides(Foreign)
def take_foreign(message: Message[Foreign], _: Intake, __: int) -> Iterator[Effect]:
    """A record in a form of another product."""
    yield _handed_on(lambda: read(message.value, message.headers))


@intake.decides(c.AnnounceSignal)
def take_ours(message: Message[c.AnnounceSignal], _: Intake, __: int) -> Iterator[Effect]:
    """A record in Kapelle's own form. Its content is not trusted: any client can write to the topic."""
    yield _handed_on(lambda: checked(message.value))


def _handed_on(made: Callable[[], c.AnnounceSignal]) -> Effect:
    try:
        signal = made()
    except NotASignal as error:
        return SetAside(str(error))
    return Send(SIGNAL_INTERNAL, signal.name, signal)
