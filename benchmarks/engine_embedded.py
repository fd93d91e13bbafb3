"""The engine on the embedded log: engine, client and worker in one process, and every commit synced to the disk.

    python -m benchmarks.engine_embedded [--quick] --state-dir DIR

The last line is one JSON object.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.engine_measures import FULL, QUICK, Measures
from benchmarks.engine_queue import queue_figures
from benchmarks.engine_work import NOOP, PARTITIONS, WORK, Command, Held, Truth, faults
from benchmarks.engine_worker import answer
from benchmarks.figures import report
from benchmarks.harness import Refused
from benchmarks.programs import ROOT
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS, TASKS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import Codec, Contract
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology

E = TypeVar("E", bound=Contract)

LOOP: Final = "kapelle-embedded"  # the thread
READ_MAX: Final = 10_000
PUBLISH_MAX: Final = 1_000
TIMEOUT_S: Final = 120.0
RUN_TIMEOUT_S: Final = 1_800.0


class Tail:
    """Reads a stream as it grows."""

    def __init__(self, runtime: EmbeddedRuntime, stream: Stream) -> None:
        self.runtime = runtime
        self.stream = stream
        self.at = dict.fromkeys(range(PARTITIONS), 0)

    def read(self, wait_s: float) -> Iterator[bytes]:
        """The new records; waits only while there are none."""
        if not self.runtime.wait(self.stream, self.at, wait_s):
            return
        for partition in self.at:
            while records := self.runtime.read(self.stream, partition, self.at[partition], READ_MAX):
                self.at[partition] = records[-1].offset + 1
                yield from (record.value or b"" for record in records)


class EmbeddedSubject:
    """The engine as its client in the same process sees it."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        self.runtime = runtime
        self._codec = Codec(runtime.topology.catalog())
        self._tail = Tail(runtime, WORKFLOW_EVENTS)
        self._stopping = threading.Event()
        self._worker: threading.Thread | None = None

    def employ(self) -> None:
        """From now on there is a worker."""
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def _work(self) -> None:
        tail = Tail(self.runtime, TASKS)
        while not self._stopping.is_set():
            tasks = [self._codec.decode(data) for data in tail.read(0.2)]
            answers = [answer(task) for task in tasks if isinstance(task, c.Task) and task.type == WORK]
            self.runtime.publish_all([(RUN_COMMANDS, key, word) for key, word in answers], timeout_s=TIMEOUT_S)

    def close(self) -> None:
        self._stopping.set()
        if self._worker is not None:
            self._worker.join()

    # As `Subject` -----------------------------------------------------------------------------------------------------

    def send(self, commands: Sequence[Command], *, at_once: bool = False) -> None:
        """Publish commands in order. What is not sent at once is durable when this returns."""
        messages = [(WORKFLOW_COMMANDS, key, command) for key, command in commands]
        for at in range(0, len(messages), PUBLISH_MAX):
            published = self.runtime.publish_all(messages[at : at + PUBLISH_MAX], timeout_s=TIMEOUT_S)
        if not at_once:
            published.result(TIMEOUT_S)

    def answer(self, held: Sequence[Held]) -> None:
        """Find the tasks of these instances, and report success."""
        wanted = set(held)
        tasks = [self._codec.decode(data) for data in Tail(self.runtime, TASKS).read(TIMEOUT_S)]
        found = [one for one in tasks if isinstance(one, c.Task) and (one.workflow_id, one.instance_id) in wanted]
        if len(found) != len(wanted):
            raise Refused(f"Expected a task for each of {len(wanted)} instances, but found {len(found)}")
        self.runtime.publish_all([(RUN_COMMANDS, *answer(one)) for one in found])

    def events(self, contract: type[E], wait_s: float) -> list[E]:
        """Decode only records of the wanted types, which the first bytes show."""
        head = b"\xc3\x01" + contract.FINGERPRINT.to_bytes(8, "little")
        decoded = [self._codec.decode(data) for data in self._tail.read(wait_s) if data.startswith(head)]
        return [value for value in decoded if isinstance(value, contract)]

    def cpu_s(self) -> float:
        """There is one process only."""
        return time.process_time()

    def engine_cpu_s(self) -> float:
        """The thread of the engine's loop alone."""
        loop = next(thread for thread in threading.enumerate() if thread.name == LOOP)
        return time.clock_gettime(time.pthread_getcpuclockid(loop.ident or 0))

    def check(self) -> None:
        """Refuse to continue if the engine has stopped."""
        if self.runtime.failure is not None:
            raise Refused(f"Expected the runtime to be running, but it has failed: {self.runtime.failure}")

    def verify(self, truths: Sequence[Truth]) -> None:
        """Read the whole history, and look for dead letters."""
        wrong = faults(truths, (value for _, value in self._history(WORKFLOW_EVENTS)), self._history(RUN_EVENTS))
        letters = self.runtime.counters.dead_letters
        if wrong or letters:
            found = ", ".join([*wrong, *[f"{letters} dead letters"] * bool(letters)])
            raise Refused(f"Expected every instance to succeed exactly once, but found {found}")

    def _history(self, stream: Stream) -> Iterator[tuple[str, Any]]:
        for partition in range(PARTITIONS):
            at = 0
            while records := self.runtime.read(stream, partition, at, READ_MAX):
                for record in records:
                    yield (record.key or b"").decode(), self._codec.decode(record.value or b"")
                at = records[-1].offset + 1


def measure_embedded(*, quick: bool) -> dict[str, float]:
    """All figures, from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="engine-embedded-") as directory:
        command = [sys.executable, "-m", "benchmarks.engine_embedded", "--state-dir", directory]
        done = subprocess.run(
            [*command, *["--quick"] * quick],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        raise Refused(f"Expected the embedded engine to succeed, but it ended with {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_embedded", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args(argv)
    sizes = QUICK if options.quick else FULL
    with EmbeddedRuntime(topology("engine", PARTITIONS), options.state_dir / "log") as runtime:
        runtime.start()
        subject = EmbeddedSubject(runtime)
        try:
            by_itself = Measures(subject, sizes, NOOP)
            figures = {
                f"embedded_{name}": value for name, value in (by_itself.all() | queue_figures(by_itself)).items()
            }
            subject.employ()
            with_worker = Measures(subject, sizes, WORK)
            figures |= {f"embedded_worker_{name}": value for name, value in with_worker.all().items()}
            subject.verify([*by_itself.truths, *with_worker.truths])
        finally:
            subject.close()
    report(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
