"""`kapelle replay`: show past states, compare two moments, and export history."""

import importlib.metadata
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.history_access import HistorySource, Progress, opened_history, scratch, tell_unreadable
from kapelle.cli.options.history import Data, File, PassOver
from kapelle.cli.options.output import Output
from kapelle.cli.options.process import RegistryUrl
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.subjects import SubjectKind, subjects
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.topology.replay.changes import Changed
    from kapelle.topology.replay.history import History
    from kapelle.topology.replay.lookup import Point, Shown, Subject
    from kapelle.topology.replay.moments import Moment

ROWS_MAX: Final = 1_000_000

group = typer.Typer(
    name="replay",
    help="Show past states, compare two moments, and export history.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]…", help="Name of the part to show: see the examples.")
]
Kind = Annotated[SubjectKind, typer.Argument(help="Part of the state to show.")]
Count = Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, max=ROWS_MAX, help="Show at most N rows.")]


@group.command("as-of")
@takes_target(*KAFKA)
def as_of(
    moment: Annotated[
        str, typer.Argument(metavar="MOMENT", help="A time, offsets (PROCESSOR-PARTITION@OFFSET,…), or end.")
    ],
    what: Kind,
    names: Names = None,
    *,
    data: Data = None,
    file: File = None,
    target: Target,
    registry: RegistryUrl = None,
    pass_over: PassOver = False,
    count: Count = 1_000,
    form: Output = Form.TEXT,
) -> None:
    """Show a workflow, queue, instance, trigger, signal or table as it was at a moment.

    The state is rebuilt from the history of the partitions that are needed. A time without a zone is in UTC. An offset
    names the first event that is left out. Partitions that are not named are read to their end.

    \b
    Examples:
      kapelle replay as-of 2026-11-10T09:00:00Z workflow etl --bootstrap-servers 127.0.0.1:9092
      kapelle replay as-of 2026-11-10T09:00:00+01:00 instance etl 12 --data kapelle-data
      kapelle replay as-of end trigger etl on-orders --file history.avro -o json
      kapelle replay as-of workflows-3@120 table workflows queue --bootstrap-servers 127.0.0.1:9092
    """
    source = HistorySource(target=target, data=data, file=file, registry=registry, passes_over=pass_over)
    with opened_history(source) as history:
        wanted = subjects(history.topology, what, names or ())
        points, rows = _looked(history, wanted, source.moment(moment, history.topology), count)
    output.show({"shards": points, "rows": rows[:count]}, form, lambda _: _show_rows(rows[:count]))
    for point in points if len(points) <= len(wanted) else ():
        output.say(_at(point))
    more = f", more exist: use -n {count * 10}" if len(rows) > count else ""
    output.say(f"{output.counted(min(len(rows), count), 'row')} from {sum(p.events for p in points):,} events{more}")


def _show_rows(rows: "Sequence[Shown]") -> None:
    tables.show(("table", "key", "row"), [(row.table, _json(row.key), _json(row.row)) for row in rows])


def _looked(
    history: "History", wanted: "Sequence[Subject]", moment: "Moment", count: int
) -> "tuple[list[Point], list[Shown]]":
    """How far each shard was folded, and the rows that were asked for, one more than that if there are more."""
    from kapelle.topology.replay.lookup import folded, point, rows_about  # noqa: PLC0415 - slow to import

    progress = Progress()
    points: list[Point] = []
    rows: list[Shown] = []
    with scratch() as store:
        for subject in wanted:
            for fold, is_done in folded(history, subject.shards(history), moment, store):
                progress.folding(fold)
                if is_done:
                    tell_unreadable(f"{fold.shard[0]}-{fold.shard[1]}", fold.unreadable.count, fold.unreadable.first)
                    points.append(point(fold))
                    rows += islice(rows_about(fold, subject), count + 1 - len(rows))
    return points, rows


@group.command()
@takes_target(*KAFKA)
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A moment, or a file written by `kapelle replay export`.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Another moment or file.")],
    what: Kind = SubjectKind.ALL,
    names: Names = None,
    *,
    data: Data = None,
    file: File = None,
    target: Target,
    registry: RegistryUrl = None,
    pass_over: PassOver = False,
    count: Count = 1_000,
    form: Output = Form.TEXT,
) -> None:
    """Show the rows that differ between two moments, or between two exports.

    Rows of A are marked with -, rows of B with +.

    \b
    Examples:
      kapelle replay diff 2026-11-10T09:00:00Z end workflow etl --bootstrap-servers 127.0.0.1:9092
      kapelle replay diff 2026-11-10T09:00:00Z 2026-11-10T09:05:00Z --data kapelle-data -o json
      kapelle replay diff monday.avro tuesday.avro
    """
    source = HistorySource(target=target, data=data, file=file, registry=registry, passes_over=pass_over)
    rows = _compared(source, (before, after), (what, names or ()), count)
    output.show_each(rows[:count], form, _show)
    more = f", more exist: use -n {count * 10}" if len(rows) > count else ""
    output.say(f"{output.counted(min(len(rows), count), 'row')} differ{'s' if len(rows) == 1 else ''}{more}")


def _compared(
    source: HistorySource, moments: tuple[str, str], subject: tuple[SubjectKind, Sequence[str]], count: int
) -> "list[Changed]":
    from kapelle.topology.replay.changes import changed  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.moments import END  # noqa: PLC0415

    # A moment that is the name of a file is the end of what is in it.
    files = [Path(text) if Path(text).is_file() else None for text in moments]
    places = [msgspec.structs.replace(source, file=each) if each else source for each in files]
    texts = [END if each else text for each, text in zip(files, moments, strict=True)]
    progress = Progress()
    with (
        scratch() as store,
        scratch() as other,
        opened_history(places[0]) as first,
        nullcontext(first) if places[0] == places[1] else opened_history(places[1]) as second,
    ):
        before = first, source.moment(texts[0], first.topology), store
        after = second, source.moment(texts[1], second.topology), other
        rows = changed(before, after, subjects(first.topology, *subject), progress.folding)
        return list(islice(rows, count + 1))


def _show(changed: "Changed") -> None:
    output.data(f"{changed.processor}-{changed.partition} {changed.table} {_json(changed.key)}")
    for sign, row in (("-", changed.before), ("+", changed.after)):
        if row is not None:
            output.data(f"  {sign} {_json(row)}")


def _at(point: "Point") -> str:
    """How far a shard was folded, in words."""
    last = f", the last of {tables.at(point.at_ms)}" if point.events else ""
    events = output.counted(point.events, "event")
    return f"{point.processor}-{point.partition}: {events} up to offset {point.offset}{last}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


@group.command()
@takes_target(*KAFKA)
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", dir_okay=False, help="File to write. An existing file is replaced.")
    ],
    *,
    at: Annotated[
        str,
        typer.Option(
            "--as-of", metavar="MOMENT", help="Export the history up to this moment: a time, offsets, or end."
        ),
    ] = "end",
    data: Data = None,
    target: Target,
    registry: RegistryUrl = None,
    pass_over: PassOver = False,
) -> None:
    """Write the history of all processors to an Avro object container file.

    The metadata of the file has the topology, partitions, offsets, the schemas of all values, and a fingerprint of the
    tables that the history leads to. Use the file with the option --file of `kapelle replay` and `kapelle verify`, or
    replay it in tests with `kapelle.testing.replay`.

    \b
    Examples:
      kapelle replay export history.avro --bootstrap-servers 127.0.0.1:9092
      kapelle replay export history.avro --data kapelle-data --as-of 2026-11-10T09:00:00Z
    """
    from kapelle.topology.replay.exports import about, folded_facts, write_export  # noqa: PLC0415 - slow to import

    progress = Progress()
    source = HistorySource(target=target, data=data, registry=registry, passes_over=pass_over)
    with opened_history(source) as history, scratch() as store:
        moment = source.moment(at, history.topology)
        facts = list(folded_facts(history, moment, store, progress.folding))
        version = importlib.metadata.version("kapelle")
        written = write_export(file, history, about(history, facts, version))
    output.data(str(file))
    output.say(f"{output.counted(written, 'event')} of {output.counted(len(facts), 'partition')}")
