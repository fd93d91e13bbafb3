"""Permits in words."""

from typing import TYPE_CHECKING

from kapelle.cli.text import tables

if TYPE_CHECKING:
    from kapelle.client import PermitNeeded


def permit_text(needed: "PermitNeeded") -> str:
    """What a step has of a permit that it needs."""
    if needed.status == "HELD":
        return "held"
    if needed.status != "WAITING":
        return "not requested yet"
    text = f"waits since {tables.at(needed.since)}"
    if needed.place is None or needed.waiting is None:
        return text
    return f"{text}, place {needed.place:,} of {needed.waiting:,}"


def duration(took_ms: int) -> str:
    """How long something took or has lasted."""
    return tables.lasted(0, took_ms)
