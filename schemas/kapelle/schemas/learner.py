"""Learning schemas from the schema topic, for all who read records: the fold, journals, replay, relays and workers.

    learner = Learner(codec.catalog, topic.read)
    if learner.learn(fingerprint): …          # decode again

A schema that is not known is looked for when a record first has it, because its writer publishes it before that record.
Anyone who may write to the topic can write junk there. Junk is passed over, and the log says where it stands.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from kapelle.schemas.catalog import Catalog
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.schema_topic import SchemaRecord, learn_record, to_records

EVERY_MS: Final = 1_000  # how often to look for the same schema
UNKNOWN_MAX: Final = 1_000  # how many unknown ones to remember
REPORTED_MAX: Final = 1_000  # how many places of junk to report

ReadTopic = Callable[[], Iterable[SchemaRecord]]

_log = logging.getLogger("kapelle.schemas")


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Learner:
    """Looks for unknown schemas on the schema topic, for each of them once in a while."""

    def __init__(self, catalog: Catalog, read: ReadTopic, now_ms: Callable[[], int] = _steady_ms) -> None:
        self._catalog = catalog
        self._read = read
        self._now_ms = now_ms  # of a clock that nobody sets
        self._after_ms: dict[int, int] = {}  # by fingerprint: when to look again
        self._reported: set[str] = set()

    def learn(self, fingerprint: int) -> bool:
        """Whether the schema is known now. Each is looked for by itself: one must not keep us from finding another.

        What the topic raises is raised, and the schema is looked for again: nothing is known about it yet.
        """
        now_ms = self._now_ms()
        if now_ms >= self._after_ms.get(fingerprint, now_ms):
            self.learn_all()
            if len(self._after_ms) >= UNKNOWN_MAX:
                self._after_ms.clear()
            self._after_ms[fingerprint] = now_ms + EVERY_MS
        return fingerprint in self._catalog.schemas

    def learn_all(self) -> None:
        """Take up every schema that stands on the topic."""
        for record in self._read():
            try:
                learn_record(self._catalog, record.key, record.value)
            except SchemaError as error:
                self._report(record.where, error)

    def _report(self, where: str, error: SchemaError) -> None:
        """Each place once: the topic is read again for each unknown schema."""
        if where not in self._reported and len(self._reported) < REPORTED_MAX:
            self._reported.add(where)
            _log.warning("passed over %s: %s", where, error)


def unpublished(catalog: Catalog, records: Iterable[SchemaRecord]) -> list[tuple[bytes, bytes]]:
    """The records that must be written for the topic to hold the catalog.

    Compaction keeps the latest record of each key. So a schema whose latest record is junk, or deleted, is not there.
    """
    latest = {record.key: record.value for record in records}
    return [(key, value) for key, value in to_records(catalog) if not _is_schema(key, latest.get(key), value)]


def _is_schema(key: bytes, value: bytes | None, ours: bytes) -> bool:
    if value is None or value == ours:
        return value is not None
    try:
        learn_record(Catalog(), key, value)  # another release may write the same schema with other comments
    except SchemaError:
        return False
    return True
