"""The demo: a thousand records are folded on the embedded log by a process that is killed half-way and started again.

    python -m tests.proof.demo

Everything is real: the process gets SIGKILL, the log and the tables are on disk, and the counts are read back from
what the second process finds there.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kapelle.schemas import Codec
from kapelle.topology.crash import CrashPoint
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.settings import Limits, MemberSettings
from tests.proof.checks import table_violations, violations
from tests.proof.processors import counting, topology
from tests.proof.tables import Shards
from tests.proof.workload import Published, ticks

RECORDS = 1_000
WORDS = 8
KILLED_AFTER_CYCLES = 7

COUNTING = topology("counting", prefix="demo", partitions=4)
# Cycles without time commit after every stride of records, so that there is a middle to be killed in.
SETTINGS = EmbeddedSettings(member=MemberSettings(limits=Limits(records_max=RECORDS, cycle_ms_max=0)))


def worker(directory: Path, *, doomed: bool) -> int:
    """The process that folds. The first one publishes, and is killed in the middle of a cycle, by itself, for real."""
    passed = 0

    def doom(point: CrashPoint) -> None:
        nonlocal passed
        passed += point is CrashPoint.BEFORE_COMMIT
        if doomed and passed > KILLED_AFTER_CYCLES:
            os.kill(os.getpid(), signal.SIGKILL)

    with EmbeddedRuntime(COUNTING, directory, settings=SETTINGS, crash=doom) as runtime:
        if doomed:
            runtime.publish_all(list(ticks(RECORDS, WORDS)))
        runtime.step_until_idle()
    return 0


def folded(directory: Path) -> list[tuple[str, object]]:
    """What stands in the history, once nothing runs."""
    codec = Codec(COUNTING.catalog())
    with EmbeddedRuntime(COUNTING, directory, settings=SETTINGS) as runtime:
        return [
            ((r.key or b"").decode(), codec.decode(r.value or b""))
            for partition in range(4)
            for r in runtime.read(counting.events, partition, 0, RECORDS * 2)
        ]


def main() -> int:
    console = Console(stderr=False, highlight=False)
    console.print("[bold]Kapelle[/bold]: exactly-once folds on a log that needs nothing but this package\n")
    with tempfile.TemporaryDirectory(prefix="kapelle-demo-") as name:
        directory = Path(name)
        began = time.monotonic()
        first = _run(directory, "first")
        console.print(f"  first process   published {RECORDS:,} records, began to fold, got SIGKILL in mid-cycle")
        done = len(folded(directory))
        console.print(f"  on disk         {done:,} of {RECORDS:,} folded, none of them half")
        second = _run(directory, "second")
        console.print("  second process  found the rest and folded it\n")
        published = list(ticks(RECORDS, WORDS))
        problems = _check(directory, published, console)
        took_s = time.monotonic() - began
        console.print(f"\n  {RECORDS:,} published, in {took_s:.1f} s with a kill in between: ", end="")
        console.print(f"[red]{problems}[/red]" if problems else "[green]0 missing, 0 doubled, tables = history[/green]")
    return 1 if problems or first != -signal.SIGKILL or second else 0


def _run(directory: Path, which: str) -> int:
    return subprocess.run([sys.executable, "-m", "tests.proof.demo", which, str(directory)], check=False).returncode


def _check(directory: Path, published: list[Published], console: Console) -> list[str]:
    codec = Codec(COUNTING.catalog())
    with EmbeddedRuntime(COUNTING, directory, settings=SETTINGS) as runtime:
        runtime.step_until_idle()
        events: dict[int, list[tuple[str, Any]]] = {
            p: [
                ((r.key or b"").decode(), codec.decode(r.value or b""))
                for r in runtime.read(counting.events, p, 0, RECORDS * 2)
            ]
            for p in range(4)
        }
        nothing: dict[int, list[tuple[str, Any]]] = {0: []}
        silent = ("joining.events", "pairs", "reminding.events", *(f"stage-{n}.events" for n in range(1, 5)))
        seen = dict.fromkeys(silent, nothing) | {"counting.events": events}
        shards = [(s.processor, s.partition, s.state) for s in runtime.member.shards.values()]
        _show(events, shards, console)
        return violations(published, seen) + table_violations(shards, seen)


def _show(events: dict[int, list[tuple[str, Any]]], shards: Shards, console: Console) -> None:
    table = Table("word", "published", "events", "count in the table", box=None, padding=(0, 3, 0, 2))
    published: dict[str, int] = {}
    for _, word, _ in ticks(RECORDS, WORDS):
        published[word] = published.get(word, 0) + 1
    rows = {
        key[0]: getattr(row, "count", 0)
        for _, _, state in shards
        for name, key, row in state.rows()
        if name == "counts"
    }
    for word in sorted(published):
        seen = sum(1 for partition in events.values() for key, _ in partition if key == word)
        table.add_row(word, str(published[word]), str(seen), str(rows.get(word)))
    console.print(table)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(worker(Path(sys.argv[2]), doomed=sys.argv[1] == "first"))
    sys.exit(main())
