"""The base of generated contract types."""

from typing import ClassVar, Self

import msgspec


class Contract(msgspec.Struct, frozen=True, gc=False):
    """A value with a published schema. Its facts belong to the class: an instance holds its fields and nothing else."""

    FULL_NAME: ClassVar[str]
    SCHEMA: ClassVar[str]
    """The schema in its normal JSON form."""
    FINGERPRINT: ClassVar[int]
    """CRC-64-AVRO of the schema's canonical form."""
    EARLIER: ClassVar[tuple[str, ...]] = ()
    """The schemas of earlier releases, so that their bytes can be read without their files."""

    def to_avro(self, head: bytes = b"") -> bytes:
        """The fields in Avro's binary encoding, after `head`."""
        raise NotImplementedError

    @classmethod
    def from_avro(cls, data: bytes, at: int = 0) -> tuple[Self, int]:
        """The value whose encoding begins at `at`, and where it ends."""
        raise NotImplementedError
