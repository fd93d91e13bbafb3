"""The processor `intake`: reads signals in any form, wherever they stand, and hands each to the keeper of its name."""

from collections.abc import Callable, Iterator
from typing import Final

from kapelle.processors.effects import Effect, Send, SetAside
from kapelle.processors.intake.forms import NotASignal, checked, read
from kapelle.processors.messages import Foreign, Message
from kapelle.processors.processor import Processor
from kapelle.processors.tables import Tables
from kapelle.processors.wiring import INTAKE_EVENTS, SIGNAL_INTERNAL, SIGNALS
from kapelle.schemas import contracts as c


class Intake(Tables):
    """Intake remembers nothing: whether a signal is a repetition is known where its name is."""


intake: Final = Processor("intake", tables=Intake, inputs=[SIGNALS], events=INTAKE_EVENTS, outputs=[SIGNAL_INTERNAL])


@intake.decides(Foreign)
def take_foreign(message: Message[Foreign], _: Intake, __: int) -> Iterator[Effect]:
    """A record in somebody else's form."""
    yield _handed_on(lambda: read(message.value, message.headers))


@intake.decides(c.AnnounceSignal)
def take_ours(message: Message[c.AnnounceSignal], _: Intake, __: int) -> Iterator[Effect]:
    """A record in our form, which anyone may have written."""
    yield _handed_on(lambda: checked(message.value))


def _handed_on(made: Callable[[], c.AnnounceSignal]) -> Effect:
    try:
        said = made()
    except NotASignal as error:
        return SetAside(str(error))
    return Send(SIGNAL_INTERNAL, said.name, said)
