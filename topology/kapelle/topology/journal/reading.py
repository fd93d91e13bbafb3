"""From bytes to entries, for every journal alike."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from kapelle.schemas import Codec, SchemaError
from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import UnknownFingerprint
from kapelle.schemas.schema_topic import learn_record

UNKNOWN_MAX: Final = 1_000  # fingerprints that were looked for in vain and are not looked for again

Schemas = Callable[[], Iterable[tuple[bytes, bytes | None]]]

_log = logging.getLogger("kapelle.journal")


class Decoder:
    """Decodes values. A schema that it does not know is looked for once; what cannot be read is None."""

    def __init__(self, codec: Codec, schemas: Schemas) -> None:
        self._codec = codec
        self._schemas = schemas
        self._unknown: set[int] = set()

    def value(self, data: bytes | None, stream: str, partition: int, offset: int) -> Contract | None:
        """The value of a record, or None with a line in the log that says where it stands and what is wrong with it."""
        try:
            return self.decode(data or b"")
        except SchemaError as error:
            _log.warning("%s-%d at %d cannot be read: %s", stream, partition, offset, error)
            return None

    def decode(self, data: bytes) -> Contract:
        """The value of a record. Raises `SchemaError`."""
        try:
            return self._codec.decode(data)
        except UnknownFingerprint as error:
            if error.fingerprint in self._unknown or len(self._unknown) >= UNKNOWN_MAX:
                raise
            self._unknown.add(error.fingerprint)
        for key, schema in self._schemas():
            learn_record(self._codec.catalog, key, schema)
        return self._codec.decode(data)


def key_text(key: bytes | None) -> str:
    """A key as text. One that is no text is nobody's of ours, and must stop nothing."""
    return (key or b"").decode(errors="replace")
