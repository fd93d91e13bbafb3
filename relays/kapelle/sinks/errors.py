"""Errors of sinks, by who must act.

SinksError
├── operator: BadSinks         a file of sinks that cannot be used: all that is wrong with it
├── operator: SinkLacks        a sink needs a package that is not installed
├── time: NotDelivered         the sink did not take an event now: it is tried again
└── record: Undeliverable      the sink will never take this event: it becomes a dead letter
"""

from collections.abc import Sequence


class SinksError(Exception):
    """Anything that keeps events from being delivered."""


class BadSinks(SinksError):
    """A file of sinks that cannot be used."""

    def __init__(self, problems: Sequence[str]) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"Expected a file of sinks, but found:\n{listed}")
        self.problems = list(problems)


class SinkLacks(SinksError):
    """A package that a sink needs is not installed."""


class NotDelivered(SinksError):
    """An event was not taken. `is_away` tells whether the sink as a whole is, so that the event is not to blame."""

    def __init__(self, reason: str, *, is_away: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.is_away = is_away
        self.retry_after_s = retry_after_s


class Undeliverable(SinksError):
    """An event that the sink does not take, however often it is offered."""
