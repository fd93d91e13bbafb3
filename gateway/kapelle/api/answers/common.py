"""Shapes that answers of all kinds share: pages, outcomes of writes, problems."""

from enum import StrEnum
from typing import Annotated, Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from kapelle.views.queries.pages import PageInfo

SCHEMAS: Final = "#/components/schemas/{name}"

T = TypeVar("T")

Value: TypeAlias = Raw  # any JSON
Members: TypeAlias = dict[str, Raw]  # an object whose members people choose
AtMs: TypeAlias = Annotated[int, Meta(description="A time in milliseconds since 1970.")]


class Problem(Struct, kw_only=True):
    """An error, in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[str]
    request_id: str | None


class Accepted(Struct, kw_only=True):
    """The request is in the log. Its outcome is not visible yet."""

    request_id: str
    status: Literal["ACCEPTED"]


class Page(Struct, Generic[T], kw_only=True):
    """A page of a list. A count or an index that is not known is null."""

    page_info: PageInfo
    total_count: int | None
    elements: list[T]


class Elements(Struct, Generic[T], kw_only=True):
    """A list without pages."""

    elements: list[T]


class Outcome(StrEnum):
    """What a write did. UNCHANGED: things were already as the request wants them."""

    DONE = "DONE"
    UNCHANGED = "UNCHANGED"


class Settled(Struct, kw_only=True):
    """The outcome of a write. `message` says why nothing has changed."""

    request_id: str
    workflow_id: str
    status: Outcome
    message: str | UnsetType = UNSET
    workflow_version_id: int | UnsetType = UNSET
    workflow_instance_id: int | UnsetType = UNSET


class Change(Struct, kw_only=True):
    """A change that somebody made."""

    author: str
    log: str
    timestamp: AtMs
