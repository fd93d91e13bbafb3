"""The counting fold on the embedded log: published, folded and durable, in a process of its own.

    python -m benchmarks.embedded --records 200000 --warm-up 20000 --state-dir DIR

This is more than the runs on Kafka are timed for: there the input stands in the log when the clock starts, here it is
written to the log on the way, by the same process. The last line is one JSON object.
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
from kapelle.topology.embedded import EmbeddedRuntime
from tests.proof.processors import topology

PUBLISH_RECORDS = 1_000
READ_RECORDS = 10_000
SINK = "counting.events"
TIMEOUT_S = 120.0


def measure_embedded(load: Load) -> Speed:
    """Run it, and refuse the figure if an output is wrong."""
    sizes = ["--records", str(load.records), "--warm-up", str(load.warm_up)]
    with tempfile.TemporaryDirectory(prefix="embedded-") as directory:
        command = [sys.executable, "-m", "benchmarks.embedded", *sizes, "--state-dir", directory]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * TIMEOUT_S, check=False)
    if done.returncode:
        raise Refused(f"Expected the embedded runtime to succeed, but it ended with {done.returncode}:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    speed = Speed("ours_embedded", load.records, found["records_per_s"], found["cpu_s_per_100k"])
    progress(f"{speed.name}: {speed.records_per_s:,.0f} records/s, {speed.cpu_s_per_100k:.1f} CPU-s per 100,000")
    return speed


def fold(runtime: EmbeddedRuntime, records: Sequence[Given]) -> tuple[float, float]:
    """Publish the records and wait until their outputs are there; returns the seconds and the CPU seconds."""
    expected = folded(runtime) + len(records)
    messages = [("ticks", given.key, given.value) for given in records]
    began, cpu_s = time.perf_counter(), time.process_time()
    for at in range(0, len(messages), PUBLISH_RECORDS):
        published = runtime.publish_all(messages[at : at + PUBLISH_RECORDS], timeout_s=TIMEOUT_S)
    published.result(TIMEOUT_S)
    while folded(runtime) < expected:
        ends = {partition: runtime.end(SINK, partition) for partition in range(PARTITIONS)}
        if folded(runtime) < expected and not runtime.wait(SINK, ends, TIMEOUT_S):
            raise Refused(f"Expected {expected} outputs in {TIMEOUT_S} s, but {folded(runtime)} are there")
    return time.perf_counter() - began, time.process_time() - cpu_s


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
    with EmbeddedRuntime(topology("counting", partitions=PARTITIONS), options.state_dir / "log") as runtime:
        runtime.start()
        fold(runtime, warm_up)
        seconds, cpu_s = fold(runtime, load)
        wrong = faults([*warm_up, *load], outputs(runtime))
    if wrong:
        raise Refused(f"Expected each output once and right, but found {', '.join(wrong)}")
    report({"records_per_s": len(load) / seconds, "cpu_s_per_100k": cpu_s / len(load) * 100_000})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
