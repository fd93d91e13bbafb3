"""Makes the records of topics into signals, at least once: offsets are committed after the signals are acknowledged.

A batch goes through all of its stages before the next one is taken, so nothing is ever in between: a crash, a
rebalance or another file of sources finds either a batch that counts or one that will be read again. What is read
again has the same ids, and the engine knows it. Taking no more than one batch is the back-pressure, too.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from confluent_kafka import Message

from kapelle.processors.intake.forms import NotASignal
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import SIGNALS
from kapelle.relay.group import GroupReader
from kapelle.relay.letters import letter_about
from kapelle.relay.metrics import SOURCES, Tally, Waits
from kapelle.relay.patience import Patience
from kapelle.relay.publication import Publisher, Sent, not_acknowledged, sent
from kapelle.relay.records import headers_of, place_of
from kapelle.schemas import SchemaError
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import Stage
from kapelle.sources.errors import RegistryAway
from kapelle.sources.mapping import signal_of
from kapelle.sources.models import Format, SourcesFile, TopicSource
from kapelle.sources.registry import Registry
from kapelle.sources.source_file import WatchedFile
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.journal import JournalUnavailable
from kapelle.topology.kafka.config import KafkaSettings

NAME: Final = "sources"
AGAIN_S: Final = 0.5  # between attempts while the log or a registry is away

_log = logging.getLogger("kapelle.sources")


class Out(msgspec.Struct, frozen=True):
    """What is to be published, and the record that it was made of."""

    stream: Stream
    key: str
    value: Contract
    of: Message


class Counts(Waits):
    """What became of records."""

    read: int = 0
    announced: int = 0
    filtered: int = 0
    set_aside: int = 0
    reloads: int = 0


class Interrupted(Exception):
    """We were told to stop in the middle of a batch: it is left as if it had not been read."""


class TopicRelay:
    """One member of the group that reads the topics of all sources."""

    def __init__(self, journal: Publisher, watched: WatchedFile, settings: KafkaSettings, *, prefix: str) -> None:
        self.counts = Counts()
        self._journal = journal
        self._watched = watched
        self._settings = settings
        self._registries: dict[str, Registry] = {}
        self._tally = Tally(self.counts, SOURCES, _log, "relayed")
        self._stopped: Callable[[], bool] = lambda: False
        self._patience = Patience()
        self._reader = GroupReader(settings, f"{prefix}.{NAME}", _log)
        self._use(watched.current)

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        return self._tally.exposition(self._reader.statistics)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Relay until told to stop; then leave the group."""
        self._stopped, self._patience = stopped, Patience(stopped)
        try:
            while not stopped():
                self.step()
        except Interrupted:
            _log.info("a batch was not committed and will be read again")
        finally:
            self._reader.close()
            for registry in self._registries.values():
                registry.close()
            self._tally.log()

    def step(self) -> None:
        """Take one batch all the way, and look at the file between batches."""
        sources = self._watched.changed()
        if sources is not None:
            _log.info("the sources have changed", extra={"fields": {"sources": len(sources.sources)}})
            self.counts.reloads += 1
            self._use(sources)
        records = self._reader.take()
        self._publish([output for record in records for output in self._outputs(record)])
        self._reader.commit(records)
        self._tally.log_now_and_then()

    # Stages -----------------------------------------------------------------------------------------------------------

    def _use(self, sources: SourcesFile) -> None:
        self._by_topic = sources.by_topic()
        self._default_registry = sources.registry
        self._reader.use(self._by_topic.keys())

    def _outputs(self, message: Message) -> Iterable[Out]:
        """The signals of a record, and a letter for each source that cannot make one of it."""
        at = place_of(message)
        self.counts.read += 1
        for source in self._by_topic[at.topic]:
            try:
                signal = signal_of(source, self._document(source, message), at)
            except NotASignal as error:
                yield self._letter(message, (Stage.DECODE, error))
                continue
            if signal is None:
                self.counts.filtered += 1
            else:
                self.counts.announced += 1
                yield Out(SIGNALS, signal.name, signal, message)

    def _document(self, source: TopicSource, message: Message) -> object:
        if source.format is Format.JSON:
            return _json(message.value())
        url = source.registry or self._default_registry or ""
        registry = self._registries.get(url) or self._registries.setdefault(url, Registry(url))
        while True:
            try:
                return registry.decode(message.value(), headers_of(message))
            except RegistryAway as error:
                self._wait(error)

    def _letter(self, message: Message, failure: tuple[Stage, Exception]) -> Out:
        self.counts.set_aside += 1
        letter = letter_about(message, NAME, failure, record_bytes_max=self._settings.record_bytes_max)
        return Out(DEAD_LETTERS, place_of(message).id, letter, message)

    def _publish(self, outputs: Sequence[Out]) -> None:
        """Publish until all is acknowledged. What the log may have taken already is published again: it is the same."""
        left: Sequence[Out] = outputs
        while left:
            answers = [(output, self._sent(output)) for output in left]
            failed = not_acknowledged(answers, self._patience, JournalUnavailable)
            left = [output for output, _ in failed]
            if failed:
                self._wait(failed[0][1])

    def _sent(self, output: Out) -> Sent:
        try:
            return sent(lambda: self._journal.publish(output.stream, output.key, output.value), JournalUnavailable)
        except SchemaError as error:  # a signal that no record can hold
            if output.stream == DEAD_LETTERS:
                raise
            self.counts.announced -= 1
            return self._sent(self._letter(output.of, (Stage.ENCODE, error)))

    def _wait(self, reason: Exception) -> None:
        if self._stopped():
            raise Interrupted
        self._tally.waits_for(reason)
        time.sleep(AGAIN_S)


def _json(value: bytes | None) -> object:
    if value is None:
        raise NotASignal("Expected a signal, but the record has no value")
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotASignal(f"Expected JSON, but {error}") from None
