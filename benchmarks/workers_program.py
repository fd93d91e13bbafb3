"""A worker of the SDK whose steps do nothing, on Kafka: what the SDK costs when the work is free.

python -m benchmarks.workers_program --bootstrap-servers HOST:PORT --prefix P --state-dir DIR
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.engine_work import WORK
from kapelle.worker import KafkaTransport, Worker, WorkerSettings

SETTINGS: Final = WorkerSettings(concurrency=100, prefetch=400)

worker = Worker()


@worker.step(WORK)
async def work() -> None:
    """Is done at once."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers_program", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", help="Not used: there is no state")
    options = parser.parse_args(argv)
    worker.run(KafkaTransport(options.bootstrap_servers, options.prefix), SETTINGS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
