"""The timeline of an instance, entry by entry."""

import sqlite3
from collections.abc import Callable
from typing import Final

import msgspec

ENTRIES_MAX: Final = 10_000


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry as it is kept (`rows.Line`), and where and when it was told."""

    position: int
    run_id: int | None
    phase: int
    type: str
    step_id: str | None
    attempt: int | None
    iteration: int | None
    body: msgspec.Raw
    at_ms: int = 0
    stream: str = ""
    partition: int = 0

    @property
    def order(self) -> tuple[int, int, int, str, int]:
        """What it stands by among the others."""
        return self.at_ms, self.run_id or 0, self.phase, self.stream, self.position


_lines: Final = msgspec.json.Decoder(Entry).decode_lines


def entries(
    connection: sqlite3.Connection,
    workflow_id: str,
    instance_id: int,
    is_wanted: Callable[[Entry], bool] = lambda _: True,
) -> list[Entry]:
    """The entries of an instance, or some of them, in the order in which they happened: the latest, if very many."""
    rows = connection.execute(
        "SELECT at_ms, stream, partition, lines FROM timeline WHERE workflow_id = ? AND instance_id = ? "
        "ORDER BY at_ms DESC",
        (workflow_id, instance_id),
    )
    found_entries: list[Entry] = []
    for at_ms, stream, partition, lines in rows:
        if len(found_entries) >= ENTRIES_MAX and at_ms < found_entries[-1].at_ms:
            break
        where = {"at_ms": at_ms, "stream": stream, "partition": partition}
        found_entries += [msgspec.structs.replace(entry, **where) for entry in _lines(lines) if is_wanted(entry)]
    found_entries.sort(key=lambda entry: entry.order)
    return found_entries[-ENTRIES_MAX:]
