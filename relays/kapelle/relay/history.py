"""Reads the history of a deployment for a relay: as one member of a consumer group, at least once.

history = HistoryReader(topology, settings, "traces", streams=(RUN_EVENTS,))
history.group.use(history.topics)
records = history.take()
…                                       # send, until the receiver has acknowledged
history.group.commit([record.message for record in records])
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from confluent_kafka import Message

from kapelle.processors.streams import Stream
from kapelle.relay.group import WAIT_S, GroupReader
from kapelle.relay.metrics import Tally
from kapelle.relay.patience import Patience
from kapelle.relay.records import key_of
from kapelle.schemas import Codec
from kapelle.schemas.headers import trace_of
from kapelle.topology.build import Topology
from kapelle.topology.journal import Entry
from kapelle.topology.journal.entries import Decoder, Raw
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.log import Place


class Recorded(NamedTuple):
    """A record of the history, as it was read and as it came. What cannot be read has no value."""

    entry: Entry
    message: Message

    @property
    def place(self) -> Place:
        return Place(self.message.topic() or "", self.entry.partition)

    @property
    def trace(self) -> str | None:
        """The trace that it came with."""
        headers = self.message.headers() or ()
        for name, content in headers.items() if isinstance(headers, dict) else headers:
            if name == "traceparent" and isinstance(content, bytes):
                return trace_of(((name, content),))
        return None


class HistoryReader:
    """The records of some streams, in the order of their partitions."""

    def __init__(
        self,
        topology: Topology,
        settings: KafkaSettings,
        name: str,
        *,
        streams: Sequence[Stream],
        is_from_end: bool = False,
    ) -> None:
        """The group is called by its name within the deployment. A new one begins at the beginning, or at the end."""
        self._streams = {topology.topic(stream): stream for stream in streams}
        codec = Codec(topology.catalog(), record_bytes_max=settings.wire_bytes_max)
        self._decoder = Decoder(codec, SchemaTopic(topology.schemas, settings).read)
        log = logging.getLogger(f"kapelle.{name}")
        self.group = GroupReader(settings, f"{topology.prefix}.{name}", log, is_from_end=is_from_end)
        self.topics = frozenset(self._streams)

    def stream(self, topic: str) -> str:
        """The name of the stream that a topic is."""
        return self._streams[topic].name

    def take(self, wait_s: float = WAIT_S) -> list[Recorded]:
        """What is there, up to a limit."""
        return [Recorded(self._entry(message), message) for message in self.group.take(wait_s=wait_s)]

    def run(self, stopped: Callable[[], bool], tally: Tally, relayed: Callable[[Patience], bool]) -> None:
        """Relay batch by batch until told to stop, or until a batch is left to be read again; then leave the group."""
        patience = Patience(stopped)
        try:
            while not stopped() and relayed(patience):
                tally.log_now_and_then()
        finally:
            self.group.close()
            tally.log()

    def _entry(self, message: Message) -> Entry:
        raw = Raw(message.offset() or 0, key_of(message), message.value(), message.timestamp()[1])
        return self._decoder.entry(self._streams[message.topic() or ""], message.partition() or 0, raw)
