"""From bytes to entries, for every journal alike.

A record that does not decode, whose key is not of the form of its stream, or that is unfit in another way
(`kapelle.processors.fitness`) is an entry without a value: nobody who reads a journal has to look at keys himself.
"""

import logging
from typing import NamedTuple

from kapelle.processors.fitness import unfit
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec, SchemaError
from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import UnknownFingerprint
from kapelle.schemas.learner import Learner, ReadTopic
from kapelle.topology.journal.journal import Entry

_log = logging.getLogger("kapelle.journal")


class Raw(NamedTuple):
    """A record as it came."""

    offset: int
    key: bytes | None
    value: bytes | None
    at_ms: int


class Decoder:
    """Decodes values. A schema that it does not know is looked for; what cannot be read is None."""

    def __init__(self, codec: Codec, schemas: ReadTopic) -> None:
        self._codec = codec
        self._learner = Learner(codec.catalog, schemas)

    def entry(self, stream: Stream, partition: int, raw: Raw) -> Entry:
        """A record as an entry. Of one without a value, a line in the log says where it stands and what is wrong."""
        value: Contract | None = None
        try:
            key = "" if raw.key is None else raw.key.decode()
            value = self.decode(raw.value or b"")
            problem = unfit(stream, key, value)
        except UnicodeDecodeError:
            key, problem = key_text(raw.key), f"Expected a UTF-8 key, but found {(raw.key or b'')[:64]!r}"
        except SchemaError as error:
            problem = str(error)
        if problem is None:
            return Entry(stream.name, partition, raw.offset, key, value, raw.at_ms)
        _log.warning("%s-%d at %d cannot be read: %s", stream.name, partition, raw.offset, problem)
        return Entry(stream.name, partition, raw.offset, key, None, raw.at_ms, problem)

    def decode(self, data: bytes) -> Contract:
        """The value of a record. Raises `SchemaError`."""
        try:
            return self._codec.decode(data)
        except UnknownFingerprint as error:
            if not self._learner.learn(error.fingerprint):
                raise
        return self._codec.decode(data)


def key_text(key: bytes | None) -> str:
    """A key as text. One that is no text is nobody's of ours, and must stop nothing."""
    return (key or b"").decode(errors="replace")
