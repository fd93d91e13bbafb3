"""Pages of lists. A cursor is the place of a row in its list, so added or removed rows never move a page."""

import base64
import binascii
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, TypedDict, TypeVar

import msgspec

from kapelle.views.errors import BadCursor
from kapelle.views.queries.records import Record

LIMIT_MAX: Final = 200
LIMIT_DEFAULT: Final = 50
CURSOR_CHARS_MAX: Final = 1_000

TEXT_MAX: Final = "\U0010ffff"  # no name begins so

K = TypeVar("K", bound=tuple[object, ...])


class PageInfo(TypedDict):
    """The position of a page in its list."""

    start_cursor: str | None
    end_cursor: str | None
    has_previous_page: bool
    has_next_page: bool
    start_index: int | None


class Page(TypedDict):
    """A page of a list. An index or a count that is not known is None."""

    page_info: PageInfo
    total_count: int | None
    elements: list[Record]


class PageRequest(msgspec.Struct, frozen=True):
    """A request for a page: the limit of its rows, and the cursor that they come after, or before."""

    limit: int = LIMIT_DEFAULT
    cursor: str | None = None
    backwards: bool = False


def begins(column: str) -> str:
    """The condition that a text begins with the first parameter, such that an index on it is searched."""
    return f"{column} >= ?1 AND {column} < ?1 || '{TEXT_MAX}'"


def cursor_of(place: Sequence[object]) -> str:
    """A place in a list, as text that means nothing to others."""
    return base64.urlsafe_b64encode(msgspec.json.encode(list(place))).decode().rstrip("=")


def place_of(cursor: str, kind: type[K]) -> K:
    """The place that a cursor stands for."""
    try:
        if len(cursor) > CURSOR_CHARS_MAX:
            raise BadCursor(cursor)
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place: K = msgspec.json.decode(text, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise BadCursor(cursor) from None
    return place


class Listing(msgspec.Struct, frozen=True):
    """A list: the columns that it is ordered by, the record of a row, and how many rows the whole list has."""

    order: tuple[str, ...]
    record: Callable[[sqlite3.Row], Record]
    total: int


def page_of(rows: Sequence[sqlite3.Row], page: PageRequest, listing: Listing, before: int) -> Page:
    """A page of rows that were selected with one more than the limit, which shows whether others follow.

    `before` is how many rows of the whole list stand before the first one of this page.
    """
    shown = list(rows[: page.limit])
    has_more = len(rows) > page.limit
    if page.backwards:
        shown.reverse()
    return {
        "page_info": {
            "start_cursor": cursor_of([shown[0][name] for name in listing.order]) if shown else None,
            "end_cursor": cursor_of([shown[-1][name] for name in listing.order]) if shown else None,
            "has_previous_page": has_more if page.backwards else before > 0,
            "has_next_page": before + len(shown) < listing.total if page.backwards else has_more,
            "start_index": before + 1 if shown else 0,
        },
        "total_count": listing.total,
        "elements": [listing.record(row) for row in shown],
    }
