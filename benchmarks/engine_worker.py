"""A worker that completes every task at once, on Kafka: it shows the cost of the engine when workers execute steps.

python -m benchmarks.engine_worker --bootstrap-servers HOST:PORT --prefix P --state-dir DIR
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

from confluent_kafka import Consumer, Producer

from benchmarks.engine_work import WORK
from kapelle.processors.wiring import RUN_COMMANDS, TASKS, run_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report
from kapelle.topology.page import topology

NAME: Final = "worker-1"
TAKE_MAX: Final = 1_000


def answer(task: c.Task) -> tuple[str, c.ReportTask]:
    """The key and the value of the report that the task has succeeded."""
    key = run_key(task.workflow_id, task.instance_id)
    return key, c.ReportTask(task.token, task.step_id, NAME, Report.SUCCEEDED)


class Worker:
    """Takes tasks from the topic as a group of one, and answers those of its type."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        made = topology(prefix=prefix)
        self.codec = Codec(made.catalog())
        self.answers = made.topic(RUN_COMMANDS)
        common = {"bootstrap.servers": bootstrap_servers, "log_level": 3}
        self.producer = Producer(
            {**common, "partitioner": "murmur2_random", "enable.idempotence": True, "linger.ms": 0}
        )
        self.consumer = Consumer(
            {
                **common,
                "group.id": f"{prefix}.work",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )
        self.consumer.subscribe([made.topic(TASKS)])
        self.running = True

    def run(self) -> None:
        """Answer until told to stop: take one, then all that is there."""
        while self.running:
            first = self.consumer.poll(0.2)
            if first is None:
                continue
            for message in [first, *self.consumer.consume(TAKE_MAX, 0)]:
                if message.error() is None:
                    self._answer(message.value() or b"")
            self.producer.poll(0)
        self.producer.flush()
        self.consumer.close()

    def _answer(self, data: bytes) -> None:
        task = self.codec.decode(data)
        if isinstance(task, c.Task) and task.type == WORK:
            key, report = answer(task)
            self.producer.produce(self.answers, self.codec.encode(report), key)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self.running = False


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_worker", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", help="Not used: there is no state")
    options = parser.parse_args(argv)
    worker = Worker(options.bootstrap_servers, options.prefix)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
