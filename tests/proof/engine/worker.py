"""One worker process of the proof: a consumer group on `tasks`, and answers to the keys of the instances.

    python -m tests.proof.engine.worker --bootstrap-servers 127.0.0.1:9092 --prefix p --partitions 4

It says STARTED of what it has taken, waits until the broker has that, and only then commits the offsets: a task whose
worker dies before is given to another one by the group, and one whose worker dies after by its lease.
"""

import argparse
import logging
import os
import signal
import sys
import time
from heapq import heappop, heappush
from itertools import count
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer

from kapelle.processors.wiring import RUN_COMMANDS, TASKS, run_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.topology.build import partition_of
from kapelle.topology.page import topology
from tests.proof.engine.behaviour import STARTED, Word, words_of

TAKEN_MAX: Final = 50
LOOK_S: Final = 0.05

_log = logging.getLogger("worker")


class Worker:
    """Takes tasks, and says of each what its token decides."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._name = f"worker-{os.getpid()}-{time.time_ns()}"
        self._topology = topology(prefix=args.prefix, partitions=args.partitions)
        self._codec = Codec(self._topology.catalog())
        self._producer = Producer({"bootstrap.servers": args.bootstrap_servers, "enable.idempotence": True})
        self._consumer = Consumer(
            {
                "bootstrap.servers": args.bootstrap_servers,
                "group.id": f"{args.prefix}.workers",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": args.session_timeout_ms,
                "heartbeat.interval.ms": args.session_timeout_ms // 4,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._agenda: list[tuple[float, int, c.Task, Word]] = []
        self._numbers = count()
        self._stopped = False

    def stop(self, *_: object) -> None:
        self._stopped = True

    def run(self) -> None:
        self._consumer.subscribe([self._topology.topic(TASKS)])
        while not self._stopped:
            self._take()
            self._say_what_is_due()
        self._producer.flush(5.0)
        self._consumer.close()

    def _take(self) -> None:
        left_s = self._agenda[0][0] - time.monotonic() if self._agenda else LOOK_S
        found = self._consumer.consume(TAKEN_MAX, min(max(left_s, 0.0), LOOK_S))
        values = (self._codec.decode(one.value() or b"") for one in found if one.error() is None)
        tasks = [value for value in values if isinstance(value, c.Task)]
        if not tasks:
            return
        for task in tasks:
            self._say(task, STARTED)
        self._producer.flush()
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            _log.warning("not committed, others will be given these tasks too: %s", error)
        taken_s = time.monotonic()
        for task in tasks:
            for word in words_of(task):
                heappush(self._agenda, (taken_s + word.after_ms / 1000, next(self._numbers), task, word))

    def _say_what_is_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= time.monotonic():
            _, _, task, word = heappop(self._agenda)
            self._say(task, word)
        self._producer.poll(0)

    def _say(self, task: c.Task, word: Word) -> None:
        key = run_key(task.workflow_id, task.instance_id)
        value = self._codec.encode(word.of(task, self._name))
        partition = partition_of(key, self._topology.partitions(RUN_COMMANDS))
        self._producer.produce(self._topology.topic(RUN_COMMANDS), value, key, partition)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.engine.worker", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--session-timeout-ms", type=int, default=6_000)
    worker = Worker(parser.parse_args(argv))
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
