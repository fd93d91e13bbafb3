"""Learning schemas that a newer process has published: looked for when a record has one that is not known."""

from contextlib import suppress
from typing import Final

from kapelle.schemas import Codec
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.schema_topic import learn_record
from kapelle.topology.log import Log

EVERY_MS: Final = 1_000  # how often to look for the same schema
UNKNOWN_MAX: Final = 1_000  # how many unknown ones to remember


class Learner:
    """Looks for unknown schemas on the topic of schemas, for each of them once in a while."""

    def __init__(self, codec: Codec, log: Log) -> None:
        self._catalog = codec.catalog
        self._log = log
        self._after_ms: dict[int, int] = {}  # by fingerprint: when to look again

    def learn(self, fingerprint: int, steady_ms: int) -> bool:
        """Whether the schema is known now. Each is looked for by itself: one must not keep us from finding another."""
        if steady_ms >= self._after_ms.get(fingerprint, 0):
            if len(self._after_ms) >= UNKNOWN_MAX:
                self._after_ms.clear()
            self._after_ms[fingerprint] = steady_ms + EVERY_MS
            for key, value in self._log.schemas():
                with suppress(SchemaError):  # a record that is not a schema of ours teaches nothing
                    learn_record(self._catalog, key, value)
        return fingerprint in self._catalog.schemas
