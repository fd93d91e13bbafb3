"""The counting fold written by hand in one file: what a careful engineer does for this one purpose, with no framework.

    python -m benchmarks.peers.handwritten --bootstrap-servers HOST:PORT --prefix P --state-dir DIR [--protocol classic]

It folds `P.ticks` into `P.counting.events` with a counter per key in RocksDB and a changelog in `P.counting.changelog`,
exactly once: outputs, changelog rows and offsets go into one transaction, and RocksDB is written after its commit. So
the local state is never ahead of Kafka, and what it lacks after a crash is read from the changelog.
"""

import argparse
import io
import json
import signal
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form
from rocksdict import Options, Rdict, WriteBatch

BATCH_RECORDS_MAX = 10_000  # a fifth of a second of work at most, as a cycle of ours
COUNT = struct.Struct(">q")
Record = Any  # a `Message` without an error: the type stubs say that its key, value and offset may be None
SCHEMAS = Path(__file__).resolve().parents[2] / "tests" / "proof" / "avsc"
OFFSET_KEY = b"\xff%d"  # sorts after every row: rows begin with a partition below 0xff


def load_schema(name: str) -> tuple[Any, bytes]:
    """The parsed schema, and the ten bytes before every value in Avro's single-object encoding."""
    # The canonical form has no logical types: times stay integers, which costs less than to make dates of them.
    canonical = to_parsing_canonical_form(json.loads((SCHEMAS / f"{name}.avsc").read_text()))
    return parse_schema(json.loads(canonical)), b"\xc3\x01" + bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))


TICK, TICK_MARK = load_schema("Tick")
COUNTED, COUNTED_MARK = load_schema("Counted")


class Counting:
    """One process: one consumer, one transactional producer, one RocksDB for all of its partitions."""

    def __init__(self, bootstrap_servers: str, prefix: str, state_dir: Path, protocol: str) -> None:
        self.events, self.changelog = f"{prefix}.counting.events", f"{prefix}.counting.changelog"
        self.bootstrap_servers = bootstrap_servers
        self.db = Rdict(str(state_dir), Options(raw_mode=True))
        self.logged: dict[int, int] = {}  # partition -> offset after its last changelog row in this transaction
        self.running = True
        self.consumer = self._consumer(f"{prefix}.counting", protocol)
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "transactional.id": f"{prefix}.counting.{state_dir.name}",
                "retry.backoff.ms": 5,  # the default of 100 is waited for at the start of every transaction
                "linger.ms": 2,  # as ours: a commit does not wait for it, and larger batches cost everybody less
                "partitioner": "murmur2_random",
            }
        )
        self.producer.init_transactions()
        self.consumer.subscribe([f"{prefix}.ticks"], on_assign=lambda _, partitions: self._restore(partitions))

    def _consumer(self, group: str, protocol: str) -> Consumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        if protocol == "classic":
            settings |= {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 6_000}
        return Consumer(settings)

    def run(self) -> None:
        """Take what is there, fold it, commit it; never wait for a batch to fill."""
        while self.running:
            first = self.consumer.poll(0.5)
            if first is None:
                continue
            batch = [first, *self.consumer.consume(BATCH_RECORDS_MAX - 1, 0)]
            try:
                self._cycle([message for message in batch if _readable(message)])
            except KafkaException as failure:
                self._abort(failure)
        self.consumer.close()
        self.db.close()

    def _cycle(self, batch: list[Record]) -> None:
        if not batch:
            return
        overlay: dict[tuple[int, bytes], int] = {}
        self.producer.begin_transaction()
        offsets = self._fold(batch, overlay)
        for (partition, key), count in overlay.items():
            self.producer.produce(
                self.changelog, COUNT.pack(count), key, partition=partition, on_delivery=self._changelog_written
            )
        self.producer.send_offsets_to_transaction(offsets, self.consumer.consumer_group_metadata())
        self.producer.commit_transaction()
        self._write(overlay)

    def _fold(self, batch: list[Record], overlay: dict[tuple[int, bytes], int]) -> list[TopicPartition]:
        produce, db, events = self.producer.produce, self.db, self.events
        buffer, now = io.BytesIO(), datetime.now(UTC).isoformat(timespec="milliseconds").encode()
        ends: dict[int, int] = {}
        for message in batch:
            partition, offset, key = message.partition(), message.offset(), message.key()
            value = io.BytesIO(message.value())
            value.seek(10)
            tick: Any = schemaless_reader(value, TICK, None)
            row = (partition, key)
            count = overlay.get(row)
            if count is None:
                stored = db.get(bytes((partition,)) + key)
                count = 0 if stored is None else COUNT.unpack(stored)[0]
            overlay[row] = count + 1
            buffer.seek(0)
            buffer.truncate()
            buffer.write(COUNTED_MARK)
            schemaless_writer(buffer, COUNTED, {"id": tick["id"], "word": tick["word"], "count": count + 1})
            headers: Any = [
                ("ce_specversion", b"1.0"),
                ("ce_id", b"ticks/%d/%d" % (partition, offset)),
                ("ce_source", b"/counting"),
                ("ce_type", b"proof.Counted"),
                ("ce_time", now),
            ]
            produce(events, buffer.getvalue(), key, headers=headers)
            ends[partition] = offset + 1
        topic = batch[0].topic()
        return [TopicPartition(topic, partition, end) for partition, end in ends.items()]

    def _changelog_written(self, error: KafkaError | None, message: Record) -> None:
        if error is None:
            self.logged[message.partition()] = message.offset() + 1

    def _write(self, overlay: dict[tuple[int, bytes], int]) -> None:
        write = WriteBatch(raw_mode=True)
        for (partition, key), count in overlay.items():
            write[bytes((partition,)) + key] = COUNT.pack(count)
        for partition, offset in self.logged.items():
            write[OFFSET_KEY % partition] = COUNT.pack(offset)
        self.logged.clear()
        self.db.write(write)

    def _abort(self, failure: KafkaException) -> None:
        """Drop the transaction and go back to what is committed; where the producer is lost, so is the process."""
        if not failure.args[0].txn_requires_abort():
            raise failure
        self.producer.abort_transaction()
        self.logged.clear()
        for partition in self.consumer.committed(self.consumer.assignment()):
            self.consumer.seek(TopicPartition(partition.topic, partition.partition, max(partition.offset, 0)))

    def _restore(self, partitions: list[TopicPartition]) -> None:
        """Read what the changelog holds beyond the local state."""
        starts = []
        for partition in partitions:
            stored = self.db.get(OFFSET_KEY % partition.partition)
            offset = 0 if stored is None else COUNT.unpack(stored)[0]
            starts.append(TopicPartition(self.changelog, partition.partition, offset))
        reader = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        reader.assign(starts)
        left = {start.partition for start in starts}
        while left:
            write = WriteBatch(raw_mode=True)
            records: list[Record] = reader.consume(10_000, 0.1)
            for message in records:
                error = message.error()
                if error is None:
                    write[bytes((message.partition(),)) + message.key()] = message.value()
                    write[OFFSET_KEY % message.partition()] = COUNT.pack(message.offset() + 1)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise KafkaException(error)
            self.db.write(write)
        reader.close()


def _readable(message: Record) -> bool:
    error = message.error()
    if error is not None and not error.retriable():
        raise KafkaException(error)
    return error is None


def on_stop(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM and SIGINT."""

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="consumer")
    options = parser.parse_args()
    counting = Counting(options.bootstrap_servers, options.prefix, options.state_dir, options.protocol)
    on_stop(lambda: setattr(counting, "running", False))
    counting.run()


if __name__ == "__main__":
    main()
