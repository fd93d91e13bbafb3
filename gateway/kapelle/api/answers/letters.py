"""The shapes of dead letters, and of records that were published again."""

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import Value
from kapelle.schemas.contracts import Stage


class Content(Struct, kw_only=True):
    """Bytes as JSON: the fields of a contract, or text, or base 64."""

    contract: str | UnsetType = UNSET
    fields: Value | UnsetType = UNSET
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET


class LetterRecord(Struct, kw_only=True):
    """The place of the record of a letter. A letter about lost records has the end of their offsets."""

    topic: str
    partition: int
    offset: int | None
    end_offset: int | UnsetType = UNSET


class LetterHeader(Struct, kw_only=True):
    """A header of a record."""

    name: str
    value: Content | None


class Letter(Struct, kw_only=True):
    """A dead letter. One that cannot be read has the reason and the bytes instead of the other members."""

    offset: int
    unreadable: str | UnsetType = UNSET
    bytes: Content | UnsetType | None = UNSET
    at: str | UnsetType = UNSET
    processor: str | UnsetType = UNSET
    stage: Stage | UnsetType = UNSET
    error: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    record: LetterRecord | UnsetType = UNSET
    key: Content | UnsetType | None = UNSET
    value: Content | UnsetType | None = UNSET
    headers: list[LetterHeader] | UnsetType = UNSET


class Redriven(Struct, kw_only=True):
    """A record that was published again: its new place, and how often it was published again."""

    letter: int
    topic: str
    partition: int
    offset: int
    redriven: int
