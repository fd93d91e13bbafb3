"""Reads and checks the JSON in internal commands to `signals`, before a decision."""

from kapelle.processors.signals.matching import conditions_of
from kapelle.processors.signals.processor import signals
from kapelle.processors.signals.search import Cursor
from kapelle.schemas import contracts as c


@signals.reads(c.SubscribeTrigger)
def subscribe_trigger(command: c.SubscribeTrigger) -> None:
    conditions_of(command.match)


@signals.reads(c.AwaitSignal)
def await_signal(command: c.AwaitSignal) -> None:
    conditions_of(command.match)


@signals.reads(c.ContinueOffers)
def continue_offers(command: c.ContinueOffers) -> None:
    Cursor.parse(command.after)
