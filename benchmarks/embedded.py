"""The counting fold on the embedded log, folded and durable, in a process of its own.

    python -m benchmarks.embedded --records 200000 --warm-up 20000 --state-dir DIR

It is timed twice: published and folded by the same process at once, and with the input standing in the log when the
clock starts, as it does in the runs on Kafka. The last line is one JSON object.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.figures import progress, report
from benchmarks.harness import Refused
from benchmarks.programs import ROOT
from benchmarks.throughput import Load, Speed
from benchmarks.workload import COUNTED, PARTITIONS, Counted, Given, faults, ticks
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.embedded.inbox import InboxLimits
from tests.proof.processors import topology

PUBLISH_RECORDS = 1_000
READ_RECORDS = 10_000
SINK = "counting.events"
TIMEOUT_S = 120.0
FIGURES = ("ours_embedded", "ours_embedded_published")
TOPOLOGY = topology("counting", partitions=PARTITIONS)


def measure_embedded(load: Load) -> tuple[Speed, Speed]:
    """With the input already in the log, and with publishing. Refuses the figures if an output is wrong."""
    sizes = ["--records", str(load.records), "--warm-up", str(load.warm_up)]
    with tempfile.TemporaryDirectory(prefix="embedded-") as directory:
        command = [sys.executable, "-m", "benchmarks.embedded", *sizes, "--state-dir", directory]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * TIMEOUT_S, check=False)
    if done.returncode:
        raise Refused(f"Expected the embedded runtime to succeed, but it ended with {done.returncode}:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    standing, published = (
        Speed(name, load.records, found[name]["records_per_s"], found[name]["cpu_s_per_100k"]) for name in FIGURES
    )
    for speed in (standing, published):
        progress(f"{speed.name}: {speed.records_per_s:,.0f} records/s, {speed.cpu_s_per_100k:.1f} CPU-s per 100,000")
    return standing, published


def stand(path: Path, records: Sequence[Given]) -> None:
    """Write the records to the log without folding them: what was accepted is written when a runtime is closed."""
    room = InboxLimits(records_max=len(records) + 1, bytes_max=1 << 30)
    with EmbeddedRuntime(TOPOLOGY, path, EmbeddedSettings(inbox=room)) as runtime:
        runtime.publish_all([("ticks", given.key, given.value) for given in records], timeout_s=TIMEOUT_S)


def fold_standing(path: Path, records: Sequence[Given]) -> tuple[float, float]:
    """Fold the records of the log; returns the seconds and the CPU seconds."""
    stand(path, records)
    with EmbeddedRuntime(TOPOLOGY, path) as runtime:
        began, cpu_s = time.perf_counter(), time.process_time()
        runtime.start()
        await_folded(runtime, len(records))
        took = time.perf_counter() - began, time.process_time() - cpu_s
        verify(runtime, records)
    return took


def fold(runtime: EmbeddedRuntime, records: Sequence[Given]) -> tuple[float, float]:
    """Publish the records and wait for their outputs; returns the seconds and the CPU seconds."""
    expected = folded(runtime) + len(records)
    messages = [("ticks", given.key, given.value) for given in records]
    began, cpu_s = time.perf_counter(), time.process_time()
    for at in range(0, len(messages), PUBLISH_RECORDS):
        published = runtime.publish_all(messages[at : at + PUBLISH_RECORDS], timeout_s=TIMEOUT_S)
    published.result(TIMEOUT_S)
    await_folded(runtime, expected)
    return time.perf_counter() - began, time.process_time() - cpu_s


def await_folded(runtime: EmbeddedRuntime, expected: int) -> None:
    while folded(runtime) < expected:
        ends = {partition: runtime.end(SINK, partition) for partition in range(PARTITIONS)}
        if folded(runtime) < expected and not runtime.wait(SINK, ends, TIMEOUT_S):
            raise Refused(f"Expected {expected} outputs in {TIMEOUT_S} s, but {folded(runtime)} are there")


def folded(runtime: EmbeddedRuntime) -> int:
    """How many outputs there are: offsets here count records and nothing else."""
    return sum(runtime.end(SINK, partition) for partition in range(PARTITIONS))


def outputs(runtime: EmbeddedRuntime) -> Iterator[Counted]:
    for partition in range(PARTITIONS):
        offset = 0
        while found := runtime.read(SINK, partition, offset, READ_RECORDS):
            for record in found:
                yield Counted(**COUNTED.decode(record.value or b""))
            offset = found[-1].offset + 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--warm-up", type=int, default=20_000)
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args(argv)
    warm_up, load = ticks(options.warm_up, "warm"), ticks(options.records, "load")
    with EmbeddedRuntime(TOPOLOGY, options.state_dir / "published") as runtime:
        runtime.start()
        fold(runtime, warm_up)
        published = fold(runtime, load)
        verify(runtime, [*warm_up, *load])
    standing = fold_standing(options.state_dir / "standing", load)
    report({name: _figures(len(load), *took) for name, took in zip(FIGURES, (standing, published), strict=True)})
    return 0


def verify(runtime: EmbeddedRuntime, given: Sequence[Given]) -> None:
    wrong = faults(given, outputs(runtime))
    if wrong:
        raise Refused(f"Expected each output once and right, but found {', '.join(wrong)}")


def _figures(records: int, seconds: float, cpu_s: float) -> dict[str, float]:
    return {"records_per_s": records / seconds, "cpu_s_per_100k": cpu_s / records * 100_000}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
