"""Pages of lists. A cursor is the place of a row in its list, so rows that come or go never move a page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from kapelle.views.errors import BadCursor

LIMIT_MAX: Final = 200
LIMIT_DEFAULT: Final = 50
CURSOR_CHARS_MAX: Final = 1_000

TEXT_MAX: Final = "\U0010ffff"  # no name begins so

K = TypeVar("K", bound=tuple[Any, ...])
R = TypeVar("R")


class Wanted(msgspec.Struct, frozen=True):
    """Which page: so many rows after a cursor, or before it."""

    limit: int = LIMIT_DEFAULT
    cursor: str | None = None
    backwards: bool = False


def begins(column: str) -> str:
    """The condition that a text begins with the first parameter, such that an index on it is searched."""
    return f"{column} >= ?1 AND {column} < ?1 || '{TEXT_MAX}'"


def cursor_of(place: Sequence[Any]) -> str:
    """A place in a list, as text that means nothing to others."""
    return base64.urlsafe_b64encode(msgspec.json.encode(list(place))).decode().rstrip("=")


def place_of(cursor: str, kind: type[K]) -> K:
    """The place that a cursor stands for."""
    try:
        if len(cursor) > CURSOR_CHARS_MAX:
            raise BadCursor(cursor)
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        found: K = msgspec.json.decode(text, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise BadCursor(cursor) from None
    return found


def page_of(
    rows: Sequence[R], wanted: Wanted, *, place: Callable[[R], Sequence[Any]], total: int, before: int
) -> dict[str, Any]:
    """A page of rows that were asked for with one more than the limit, so that we know whether there are others.

    `before` is how many rows of the whole list stand before the first one of this page.
    """
    shown = list(rows[: wanted.limit])
    has_more = len(rows) > wanted.limit
    if wanted.backwards:
        shown.reverse()
    start = before + 1 if shown else 0
    return {
        "page_info": {
            "start_cursor": cursor_of(place(shown[0])) if shown else None,
            "end_cursor": cursor_of(place(shown[-1])) if shown else None,
            "has_previous_page": has_more if wanted.backwards else before > 0,
            "has_next_page": before + len(shown) < total if wanted.backwards else has_more,
            "start_index": start,
        },
        "total_count": total,
        "elements": shown,
    }
