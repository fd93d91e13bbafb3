"""The named moments at which a process may die, so that tests can make it die there.

Each stands where losing or doubling would begin if the protocol were wrong.
"""

from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    """The moments, in the order in which a cycle passes them."""

    DURING_RESTORE = "during-restore"
    DURING_REVOKE = "during-revoke"
    AFTER_CONSUME = "after-consume"
    AFTER_PRODUCE = "after-produce"
    BEFORE_COMMIT = "before-commit"
    AFTER_COMMIT = "after-commit"  # the log has the cycle, the tables do not


Crash = Callable[[CrashPoint], None]


def never(_point: CrashPoint) -> None:
    """The default: live on."""
