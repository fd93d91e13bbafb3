"""Checks of every command to `workflows`, before a decision."""

from collections.abc import Callable
from typing import Final

from kapelle.processors.decisions import Command
from kapelle.processors.refusals import invalid
from kapelle.schemas import contracts as c

CHARS_MAX: Final = {"request_id": 256, "author": 256, "reason": 16_384}
INSTANCES: Final = ("instance_id", "after_instance_id", "upto_instance_id")


def check_of(contract: type[Command]) -> Callable[[object], None] | None:
    """Refuse ids and reasons that are too long to be keys, or to be repeated in a hundred events; negative numbers."""
    fields = contract.__struct_fields__
    texts = [(name, chars_max) for name, chars_max in CHARS_MAX.items() if name in fields]
    numbers = [name for name in INSTANCES if name in fields]
    if contract is c.RecordRunEnd or not (texts or numbers):  # an end is true, however it is told
        return None

    def check(command: object) -> None:
        for name, chars_max in texts:
            chars = len(getattr(command, name))
            if chars > chars_max:
                raise invalid(f"Expected {name} of at most {chars_max:,} characters, but found {chars:,}")
        for name in numbers:
            number = getattr(command, name)
            if number is not None and number < 0:
                raise invalid(f"Expected {name} of at least 0, but found {number}")

    return check
