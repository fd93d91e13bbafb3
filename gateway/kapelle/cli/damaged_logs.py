"""Damaged directories of `kapelle dev`: the messages about them, and the use of their readable part."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kapelle.cli.errors import BadSalvage, DataDamaged, DataInUse
from kapelle.cli.text import output

if TYPE_CHECKING:
    from kapelle.schemas import Framing
    from kapelle.topology.build import Topology
    from kapelle.topology.embedded import EmbeddedRuntime, Lost
    from kapelle.topology.salvage import Salvaged

LOG: Final = "log"
VIEWS: Final = "views"
REPORT: Final = "salvaged.json"
WHO: Final = "salvage"  # in the place of a processor, in the letter that tells of it
TELL_S: Final = 30.0


@contextmanager
def damage_told(data: Path) -> "Iterator[None]":
    """Let an error of RocksDB about damaged files tell the operator what can be done."""
    from kapelle.topology.tables import StoreCorrupt  # noqa: PLC0415 - slow to import

    try:
        yield
    except StoreCorrupt as error:
        raise DataDamaged(data, error.reason) from error


def salvaged(data: Path | None, topology: "Topology", framing: "Framing | None") -> "Salvaged | None":
    """Make a damaged directory usable again, and say what was given up. None: nothing was wrong with it."""
    from kapelle.topology.salvage import salvage  # noqa: PLC0415 - slow to import
    from kapelle.topology.tables import StoreLocked  # noqa: PLC0415
    from kapelle.views.witness import witness_of  # noqa: PLC0415

    if data is None:
        raise BadSalvage("Expected --data DIR with --salvage, to say which directory is damaged, but found none")
    try:
        result = salvage(topology, data / LOG, witness_of(data / VIEWS, topology), framing=framing)
    except StoreLocked as error:
        raise DataInUse(data, error.holder) from error
    if result is None:
        output.say(f"nothing to salvage: {data} is complete and readable")
        return None
    # The view may show what the log has no more. It is made again from the log, so what it was is kept.
    if (data / VIEWS).is_dir():
        shutil.copytree(data / VIEWS, result.kept / VIEWS, dirs_exist_ok=True)
    (result.kept / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(_report(result)), indent=2))
    output.say(str(result), style="bold yellow")
    return result


def record(runtime: "EmbeddedRuntime", salvaged: "Salvaged") -> None:
    """Put what was given up among the dead letters, where it stays."""
    from kapelle.schemas import Codec  # noqa: PLC0415 - slow to import
    from kapelle.schemas.contracts import DeadLetter, Stage  # noqa: PLC0415
    from kapelle.topology.deadletters import NOWHERE, REASON_CHARS_MAX  # noqa: PLC0415
    from kapelle.topology.log import Place  # noqa: PLC0415
    from kapelle.topology.partition_time import SYSTEM_CLOCK  # noqa: PLC0415

    topology = runtime.topology
    first = salvaged.lost[0].place if salvaged.lost else Place(topology.dead_letters, 0)
    letter = DeadLetter(
        processor=WHO,
        stage=Stage.OTHER,
        reason=str(salvaged)[:REASON_CHARS_MAX],
        error="LogDamaged",
        topic=first.topic,
        partition=first.partition,
        offset=salvaged.lost[0].first if salvaged.lost else NOWHERE,
        at_ms=SYSTEM_CLOCK(),
    )
    value = Codec(topology.catalog()).encode(letter)
    runtime.publish_at(Place(topology.dead_letters, 0), (WHO.encode(), value, ())).result(TELL_S)


def _report(salvaged: "Salvaged") -> dict[str, object]:
    return {
        "damage": salvaged.damage,
        "kept": str(salvaged.kept),
        "lost": [_named(lost) for lost in salvaged.lost],
        "tables_made_again": salvaged.rebuilt,
        "not_folded": [_named(lost) for lost in salvaged.skipped],
    }


def _named(lost: "Lost") -> dict[str, object]:
    return {"topic": lost.place.topic, "partition": lost.place.partition, "first": lost.first, "end": lost.end}
