"""The size of each table: its rows and their bytes, counted by scanning them, a slice at a time.

The store could tell about how many bytes lie between two keys, but rocksdict does not let us ask. So a thread of its
own goes over the tables of the shards that are ours, and rests after every slice for so long that it takes a hundredth
of a core at most, however many rows there are: about a million a minute. The loop of the member has no part in it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Final, Self

from kapelle.topology.metrics import TableSize, TableSizes
from kapelle.topology.shard import Shard
from kapelle.topology.tables import RocksStore, StoreClosed, StoreError

SLICE_ROWS: Final = 500  # a third of a millisecond
RESTS: Final = 99  # so many times what a slice took
ROUND_S: Final = 30.0  # from the end of a round to the next
FIRST_S: Final = 1.0  # the same, while no shard is ours

_log = logging.getLogger("kapelle.tables")


class Weighing:
    """Goes over tables again and again while it is entered. What it has found may be read from any thread."""

    def __init__(
        self, store: RocksStore, shards: Callable[[], Iterable[Shard]], *, slice_rows: int = SLICE_ROWS
    ) -> None:
        self.found: TableSizes = {}
        self.round_s = ROUND_S
        self._store = store
        self._shards = shards
        self._slice_rows = slice_rows
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kapelle-weighing", daemon=True)

    def round(self) -> Iterator[float]:
        """Weigh every table once. Yields after each slice how long it took, in seconds."""
        places = _places(self._shards())
        for table, bounds in places.items():
            rows = size_bytes = 0
            for start, end in bounds:
                rest: bytes | None = start
                while rest is not None:
                    began = time.perf_counter()
                    extent = self._store.measure(rest, end, self._slice_rows)
                    rows, size_bytes, rest = rows + extent.rows, size_bytes + extent.size_bytes, extent.rest
                    yield time.perf_counter() - began
            self.found[table] = TableSize(rows, size_bytes)
        self.found = {table: size for table, size in self.found.items() if table in places}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                for took_s in self.round():
                    if self._stop.wait(took_s * RESTS):
                        return
            except StoreClosed:
                return  # we are leaving
            except StoreError as error:
                # The loop reads the same rows, and acts on what it meets there.
                _log.warning("the sizes of tables cannot be measured: %s", error)
            self._stop.wait(self.round_s if self.found else FIRST_S)


def _places(shards: Iterable[Shard]) -> dict[tuple[str, str], list[tuple[bytes, bytes]]]:
    """Where the rows of each table are: one place for each shard."""
    places: dict[tuple[str, str], list[tuple[bytes, bytes]]] = {}
    for shard in shards:
        for table, bounds in shard.state.bounds().items():
            places.setdefault((shard.processor.name, table), []).append(bounds)
    return places
