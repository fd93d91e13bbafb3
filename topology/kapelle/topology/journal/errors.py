"""Errors between the log and code outside the fold, by who must act.

    JournalError
    └── operator, or time: JournalUnavailable    the log cannot be reached, or takes nothing now

A record that is too large or cannot be encoded is the caller's: `RecordTooLarge`, `NotEncodable` (`kapelle.schemas`).
"""

from typing import Final

import msgspec

from kapelle.topology.errors import TopologyError

# What the values of one record can raise in code that reads them, as against a disk or a log that fails.
RECORD_FAULTS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)


class JournalError(TopologyError):
    """Anything wrong between the log and those who use it from outside."""


class JournalUnavailable(JournalError):
    """The log takes or gives nothing now. What was being published may stand in it all the same."""

    def __init__(self, doing: str, found: object) -> None:
        super().__init__(f"Expected the log to {doing}, but {found}")
        self.doing = doing
