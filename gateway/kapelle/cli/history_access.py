"""What replay and verify share: access to history, temporary tables, and progress messages."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kapelle.cli.apps import load_topology
from kapelle.cli.damaged_logs import LOG, VIEWS, damage_told
from kapelle.cli.errors import DataInUse, NoServers
from kapelle.cli.options.target import Target
from kapelle.cli.reach import reaching
from kapelle.cli.registry import framing
from kapelle.cli.text import output
from kapelle.cli.topic_plan import planned, wrong
from kapelle.topology.kafka.topics import Do
from kapelle.topology.replay.errors import NoHistory

if TYPE_CHECKING:
    from kapelle.topology.build import Topology
    from kapelle.topology.kafka.config import KafkaSettings
    from kapelle.topology.replay.fold import Folding
    from kapelle.topology.replay.history import History
    from kapelle.topology.replay.moments import Moment
    from kapelle.topology.tables import RocksStore

TELL_EVERY_S: Final = 2.0


class HistorySource(msgspec.Struct, frozen=True, kw_only=True):
    """Where history is: in a file, in a directory, or on Kafka. The first that was given counts."""

    target: Target
    data: Path | None = None
    file: Path | None = None
    registry: str | None = None
    passes_over: bool = False

    def moment(self, text: str, topology: "Topology") -> "Moment":
        """A moment as it was written."""
        from kapelle.topology.replay.moments import Moment  # noqa: PLC0415 - slow to import

        return msgspec.structs.replace(Moment.parse(text, topology), passes_over=self.passes_over)

    def __str__(self) -> str:
        return str(self.file or self.data or "Kafka")


@contextmanager
def opened_history(source: HistorySource) -> "Iterator[History]":
    """The history that was named, closed at the end."""
    with ExitStack() as opened:
        if source.file is not None:
            yield _exported(source, source.file)
        elif source.data is not None:
            yield _stored(opened, source, source.data)
        else:
            yield _on_kafka(opened, source)


def _exported(source: HistorySource, file: Path) -> "History":
    from kapelle.topology.replay.exports import ExportedHistory, read_about  # noqa: PLC0415 - slow to import

    about = read_about(file)
    topology = source.target.topology()
    if (topology.prefix, topology.partitions_default) != (about.prefix, about.partitions):
        topology = load_topology(source.target.app, prefix=about.prefix, partitions=about.partitions)
    return ExportedHistory(file, topology)


def _stored(opened: ExitStack, source: HistorySource, data: Path) -> "History":
    from kapelle.topology.embedded.soundness import check  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.history import StoredHistory  # noqa: PLC0415
    from kapelle.views.witness import witness_of  # noqa: PLC0415

    topology = source.target.topology()
    if not (data / LOG).is_dir():
        raise NoHistory(data)
    witness = witness_of(data / VIEWS, topology)
    opened.enter_context(damage_told(data))
    store = locked(opened, data / LOG, data, check=lambda path: check(path, witness))
    return StoredHistory(topology, store, where=data, framing=framing(topology, source.registry))


def locked(opened: ExitStack, path: Path, shown: Path, *, check: Callable[[Path], None] | None = None) -> "RocksStore":
    """A store that nobody else has, closed at the end. `check` may refuse it before it is opened."""
    from kapelle.topology.tables import Memory, RocksStore, StoreLocked  # noqa: PLC0415 - slow to import

    try:
        store = RocksStore(path, Memory(), check=check)
    except StoreLocked as error:
        raise DataInUse(shown, error.holder) from error
    opened.callback(store.close)
    return store


def _on_kafka(opened: ExitStack, source: HistorySource) -> "History":
    from kapelle.topology.replay.kafka import KafkaHistory  # noqa: PLC0415 - slow to import

    topology, kafka = source.target.topology(), servers(source.target)
    written = framing(topology, source.registry)
    # How long topics are kept and the like is for those who write to them to refuse.
    missing = [change for change in planned(source.target) if change.do in (Do.CREATE, Do.MIGRATE)]
    if missing:
        raise wrong(missing, source.target)
    opened.enter_context(reaching(kafka))
    history = KafkaHistory(topology, kafka, framing=written)
    opened.callback(history.close)
    return history


def servers(target: Target) -> "KafkaSettings":
    """The settings for Kafka. If nothing says where history is, the error names all three options."""
    if not target.names_kafka:
        raise NoServers(
            "Expected --file, --data or --bootstrap-servers to say where history is, but found none of them"
        )
    return target.kafka()


@contextmanager
def scratch() -> "Iterator[RocksStore]":
    """Room for tables, on disk, so that their size is no matter."""
    from kapelle.topology.tables import Memory, RocksStore  # noqa: PLC0415 - slow to import

    with tempfile.TemporaryDirectory(prefix="kapelle-replay-") as directory:
        store = RocksStore(Path(directory) / "tables", Memory())
        try:
            yield store
        finally:
            store.close()


def tell_unreadable(shard: str, count: int, first: Sequence[tuple[int, str]]) -> None:
    """Say which records of a history could not be read."""
    if count:
        output.say(f"{shard}: {output.counted(count, 'record')} skipped: unreadable", style="yellow")
    for offset, reason in first:
        output.say(f"  offset {offset}: {reason}")


class Progress:
    """Says now and then, on stderr, how far a fold is."""

    def __init__(self) -> None:
        self._said_at_s = time.monotonic()

    def tell(self, shard: str, events: int) -> None:
        now_s = time.monotonic()
        if events and now_s - self._said_at_s >= TELL_EVERY_S:
            self._said_at_s = now_s
            output.say(f"{shard}: {events:,} events")

    def folding(self, fold: "Folding") -> None:
        self.tell(f"{fold.shard[0]}-{fold.shard[1]}", fold.events)
