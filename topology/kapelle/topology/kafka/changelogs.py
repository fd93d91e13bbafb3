"""Reading changelogs back: a consumer outside any group, assigned exactly the partitions that are being restored."""

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kapelle.broker import is_end, is_final
from kapelle.topology.errors import BrokerRefused, CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import translated
from kapelle.topology.log import Place, Row

PREFETCH_KB = 64 * 1024
END_WAIT_MS = 10  # the broker tells of an end only after so long without records; the default is half a second


class ChangelogReader:
    """Made when the first changelog is watched, closed when none is: most of the time it does not exist."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        self._config = settings.reader(group) | {
            "queued.max.messages.kbytes": PREFETCH_KB,
            "statistics.interval.ms": 0,
            "fetch.wait.max.ms": END_WAIT_MS,
        }
        self._consumer: Consumer | None = None

    def watch(self, changelogs: Mapping[Place, int]) -> None:
        if not changelogs:
            self.close()
            return
        if self._consumer is None:
            self._consumer = Consumer(self._config)
        with translated("read changelogs"):
            self._consumer.assign([TopicPartition(p.topic, p.partition, offset) for p, offset in changelogs.items()])

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:
        rows: dict[Place, list[Row]] = {}
        reached: dict[Place, int] = {}
        if self._consumer is None:
            return rows, reached
        messages = self._consumer.consume(rows_max, 0)
        if not messages:
            first = self._consumer.poll(wait_s)
            messages = [first] if first is not None else []
        for message in messages:
            error = message.error()
            place = Place(message.topic(), message.partition())  # type: ignore[arg-type]
            offset: int = message.offset()  # type: ignore[assignment]
            if error is None:
                rows.setdefault(place, []).append(Row(offset, message.key(), message.value()))  # type: ignore[arg-type]
                reached[place] = offset + 1
            elif is_end(error):
                reached[place] = offset
            elif is_final(error):
                raise BrokerRefused(f"can't read the changelog {place}: {error.str()}")
        return rows, reached

    def any_of(self, changelogs: Iterable[Place], timeout_s: float) -> Place | None:
        """One of these changelogs that has committed rows; None if they have only what was aborted."""
        left = set(changelogs)
        until = time.monotonic() + timeout_s
        try:
            self.watch(dict.fromkeys(left, OFFSET_BEGINNING))
            while left:
                rows, reached = self.rows(1, END_WAIT_MS / 1000)
                if rows:
                    return next(iter(rows))
                left -= reached.keys()
                if left and time.monotonic() > until:
                    raise CycleAborted(f"changelogs could not be read within {timeout_s} s")
        finally:
            self.close()
        return None

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
