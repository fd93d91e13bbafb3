"""The counting fold on Faust, with its `exactly_once`.

python -m benchmarks.peers.faust_app --bootstrap-servers HOST:PORT --prefix P --state-dir DIR
"""

import argparse
import time
from datetime import UTC, datetime
from typing import Any

import faust  # type: ignore[import-not-found, unused-ignore]
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.workload import COUNTED, PARTITIONS, TICK


def application(bootstrap_servers: str, prefix: str, state_dir: str) -> Any:
    app = faust.App(
        f"{prefix}.counting",
        broker=f"aiokafka://{bootstrap_servers}",
        store="rocksdb://",
        datadir=state_dir,
        processing_guarantee="exactly_once",
        broker_commit_interval=0.1,
        consumer_auto_offset_reset="earliest",
        topic_partitions=PARTITIONS,
        topic_replication_factor=1,
        topic_allow_declare=True,
        web_enabled=False,
    )
    ticks = app.topic(f"{prefix}.ticks", key_type=str, value_type=bytes, key_serializer="raw", value_serializer="raw")
    events = app.topic(f"{prefix}.counting.events", key_serializer="raw", value_serializer="raw")
    counts = app.Table("counts", default=int, partitions=PARTITIONS, options={"driver": "rocksdict"})

    @app.agent(ticks)  # type: ignore[untyped-decorator, unused-ignore]
    async def counting(stream: Any) -> None:
        async for event in stream.events():
            tick = TICK.decode(event.value)
            counts[tick["word"]] += 1
            value = COUNTED.encode({"id": tick["id"], "word": tick["word"], "count": counts[tick["word"]]})
            origin = event.message
            await events.send(key=origin.key, value=value, headers=headers(origin.partition, origin.offset))

    return app


def create_changelog(bootstrap_servers: str, prefix: str) -> None:
    """The topic of the table. Faust makes it as well, but stands still for ever if the broker is slow to tell of it."""
    admin, name = AdminClient({"bootstrap.servers": bootstrap_servers}), f"{prefix}.counting-counts-changelog"
    admin.create_topics([NewTopic(name, PARTITIONS, 1, config={"cleanup.policy": "compact"})])[name].result()
    while len(admin.list_topics(name).topics[name].partitions) < PARTITIONS:
        time.sleep(0.05)


def headers(partition: int, offset: int) -> dict[str, bytes]:
    return {
        "ce_specversion": b"1.0",
        "ce_id": b"ticks/%d/%d" % (partition, offset),
        "ce_source": b"/counting",
        "ce_type": COUNTED.type.encode(),
        "ce_time": datetime.now(UTC).isoformat(timespec="milliseconds").encode(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", required=True)
    options = parser.parse_args()
    create_changelog(options.bootstrap_servers, options.prefix)
    app = application(options.bootstrap_servers, options.prefix, options.state_dir)
    faust.Worker(app, loglevel="warning").execute_from_commandline()


if __name__ == "__main__":
    main()
