"""`kapelle verify`: compare the live tables with the tables that the history leads to."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.damaged_logs import VIEWS
from kapelle.cli.errors import NotThere, TablesDiffer, UnknownProcessor
from kapelle.cli.history_access import HistorySource, Progress, locked, opened_history, scratch, tell_unreadable
from kapelle.cli.options.history import Data, File
from kapelle.cli.options.output import Output
from kapelle.cli.options.process import RegistryUrl
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.topology.build import Topology
    from kapelle.topology.replay.comparison import Difference
    from kapelle.topology.replay.exports import ExportedHistory
    from kapelle.topology.replay.fold import ShardName
    from kapelle.topology.replay.history import StoredHistory
    from kapelle.topology.replay.kafka import KafkaHistory
    from kapelle.topology.replay.verification import Verdict
    from kapelle.topology.tables import RocksStore

TABLES: Final = "tables"  # where a process on Kafka keeps them, in its state directory
HEADS: Final = ("processor", "partition", "events", "rows", "result")

StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        file_okay=False,
        exists=True,
        help="Compare the tables in this state directory, after an update from the changelogs.",
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="[PROCESSOR]…", help="Processors to verify. Default: all.")]


@takes_target(*KAFKA)
def verify(
    names: Names = None,
    *,
    data: Data = None,
    file: File = None,
    state_dir: StateDir = None,
    target: Target,
    registry: RegistryUrl = None,
    form: Output = Form.TEXT,
) -> None:
    """Rebuild the tables from the history and compare them with the live tables, partition by partition.

    On Kafka the live tables are those of the changelogs, or of --state-dir. Members can run at the same time: each
    partition is compared as of one committed cycle. With --data, the whole data directory is read, and a damaged one is
    refused. With --file, the fingerprints in the file are compared.

    If a row differs, the exit code is 1 and the first difference is reported: processor, partition, table, key,
    expected and found. The same holds if the tables break a law, for example if a limit counts more permits than
    attempts hold. With --data, the tables of permits and runs are also compared with each other: each holder of a
    permit must be an attempt that has not ended. Records that are not events of Kapelle, for example with a key that
    cannot be read, are listed with their offsets and skipped: they are not part of any table.

    \b
    Examples:
      kapelle verify --bootstrap-servers 127.0.0.1:9092
      kapelle verify workflows runs --bootstrap-servers 127.0.0.1:9092 --state-dir state
      kapelle verify --data kapelle-data -o json
      kapelle verify --file history.avro
    """
    source = HistorySource(target=target, data=data, file=file, registry=registry)
    verdicts = _told(source, names or (), state_dir)
    output.show(verdicts, form, _show)
    for verdict in verdicts:
        tell_unreadable(f"{verdict.processor}-{verdict.partition}", verdict.unreadable, verdict.unread)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    if wrong:
        raise TablesDiffer(_difference(wrong))
    compared = [verdict for verdict in verdicts if not verdict.skipped]
    output.say(
        f"{output.counted(len(compared), 'partition')} compared, {sum(v.rows for v in compared):,} rows are the fold "
        f"of {sum(v.events for v in compared):,} events"
    )


def _show(verdicts: "Sequence[Verdict]") -> None:
    shown = [v for v in verdicts if v.events or v.rows or v.differences or v.skipped or v.broken]
    tables.show(HEADS, [(v.processor, v.partition, v.events, v.rows, _result(v)) for v in shown])


def _told(source: HistorySource, names: Sequence[str], state_dir: Path | None) -> "list[Verdict]":
    from kapelle.topology.replay.exports import ExportedHistory  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.history import StoredHistory  # noqa: PLC0415
    from kapelle.topology.replay.kafka import KafkaHistory  # noqa: PLC0415
    from kapelle.topology.salvage.readable import read_all  # noqa: PLC0415

    progress = Progress()
    if source.data is not None:
        _look_at_view(source.data / VIEWS)
    with ExitStack() as opened:
        history = opened.enter_context(opened_history(source))
        shards = _shards(history.topology, names)
        match history:
            case ExportedHistory():
                verdicts = _exported(opened, history, shards, progress)
            case StoredHistory():
                read_all(history.store)
                verdicts = _stored(opened, history, shards, progress)
            case KafkaHistory():
                verdicts = _live(opened, history, shards, (_kept(opened, state_dir), progress))
            case _:
                raise TypeError(f"Expected a history of a known kind, but found {type(history).__name__}")
        return list(verdicts)


def _look_at_view(directory: Path) -> None:
    """Say so if the view is damaged. This is not a failure: the next start rebuilds the view."""
    from kapelle.views.witness import damage_of  # noqa: PLC0415 - slow to import

    damage = damage_of(directory)
    if damage is not None:
        output.say(f"the view in {directory} is damaged; the next start rebuilds it from the log: {damage}")


def _shards(topology: "Topology", names: Sequence[str]) -> "list[ShardName]":
    unknown = [name for name in names if name not in topology.processors]
    if unknown:
        raise UnknownProcessor(unknown, list(topology.processors))
    return [(name, n) for name in names or topology.processors for n in range(topology.processor_partitions(name))]


def _kept(opened: ExitStack, state_dir: Path | None) -> "RocksStore | None":
    """The tables that a process has left, if a directory was named."""
    if state_dir is None:
        return None
    if not (state_dir / TABLES).is_dir():
        raise NotThere(f"Expected the state directory of a process, but found no {TABLES} in {state_dir}")
    return locked(opened, state_dir / TABLES, state_dir)


def _live(
    opened: ExitStack,
    history: "KafkaHistory",
    shards: "Sequence[ShardName]",
    beside: "tuple[RocksStore | None, Progress]",
) -> "Iterator[Verdict]":
    from kapelle.topology.replay.live import LiveTables  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.verification import Stores  # noqa: PLC0415

    kept, progress = beside
    stores = Stores(opened.enter_context(scratch()), opened.enter_context(scratch()))
    return LiveTables(history, stores, kept).verify(shards, progress.tell)


def _stored(
    opened: ExitStack, history: "StoredHistory", shards: "Sequence[ShardName]", progress: Progress
) -> "Iterator[Verdict]":
    from kapelle.topology.replay.agreement import BOTH, verify_agreement  # noqa: PLC0415
    from kapelle.topology.replay.lookup import folded  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.moments import Moment  # noqa: PLC0415
    from kapelle.topology.replay.verification import verify_stored  # noqa: PLC0415

    for fold, is_done in folded(history, shards, Moment(passes_over=True), opened.enter_context(scratch())):
        progress.folding(fold)
        if is_done:
            yield verify_stored(fold, history.store)
    if set(BOTH) <= {name for name, _ in shards}:
        yield verify_agreement(history)


def _exported(
    opened: ExitStack, history: "ExportedHistory", shards: "Sequence[ShardName]", progress: Progress
) -> "Iterator[Verdict]":
    from kapelle.topology.replay.lookup import folded  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.moments import Moment  # noqa: PLC0415
    from kapelle.topology.replay.verification import verify_fingerprint  # noqa: PLC0415

    expected = {(shard.processor, shard.partition): shard.fingerprint for shard in history.about.shards}
    for fold, is_done in folded(history, shards, Moment(passes_over=True), opened.enter_context(scratch())):
        progress.folding(fold)
        if is_done and fold.shard in expected:
            yield verify_fingerprint(fold, expected[fold.shard])


def _result(verdict: "Verdict") -> str:
    if verdict.skipped:
        return verdict.skipped
    unread = f", {output.counted(verdict.unreadable, 'record')} unreadable" if verdict.unreadable else ""
    if verdict.is_right:
        return f"right{unread}"
    broken = f", {output.counted(len(verdict.broken), 'law')} broken" if verdict.broken else ""
    return f"{output.counted(verdict.differences, 'row')} wrong{broken}{unread}"


def _difference(wrong: "Sequence[Verdict]") -> str:
    worst = wrong[0]
    if worst.first is None:
        return (
            f"Expected the laws of the tables to hold, but they do not. The first: processor {worst.processor}, "
            f"partition {worst.partition}, {worst.broken[0]}"
        )
    count = sum(verdict.differences for verdict in wrong)
    return (
        f"Expected the tables to be the fold of the history, but {output.counted(count, 'row')} in "
        f"{output.counted(len(wrong), 'partition')} are not. The first: processor {worst.processor}, partition "
        f"{worst.partition}, {_named(worst.first)}"
    )


def _named(first: "Difference | None") -> str:
    if first is None:
        return ""
    expected, found = (
        "no row" if row is None else msgspec.json.encode(row).decode() for row in (first.expected, first.found)
    )
    key = msgspec.json.encode(first.key).decode()
    return f"table {first.table}, key {key}: expected {expected}, found {found}"
