"""The counting fold on Quix Streams, exactly once.

    python -m benchmarks.peers.quix --bootstrap-servers HOST:PORT --prefix P --state-dir DIR [--commit-ms 100]

Tuned as far as its settings go: a commit every 100 ms (its default of 5 s is slower, not faster, on this work), and
the producer's `retry.backoff.ms` lowered as in every other runtime here.
"""

import argparse
from datetime import UTC, datetime
from typing import Any

from quixstreams import Application, State, message_context  # type: ignore[import-not-found, unused-ignore]
from quixstreams.models.topics.exceptions import TopicNotFoundError  # type: ignore[import-not-found, unused-ignore]

from benchmarks.workload import COUNTED, TICK

Headers = list[tuple[str, bytes]]
TRIES_MAX = 10


def count(value: bytes, state: State) -> bytes:
    tick = TICK.decode(value)
    counted: int = state.get("count", 0) + 1
    state.set("count", counted)
    return COUNTED.encode({"id": tick["id"], "word": tick["word"], "count": counted})


def headers(_value: Any, _key: Any, _timestamp: int, _headers: Any) -> Headers:
    origin = message_context()
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"ticks/%d/%d" % (origin.partition, origin.offset)),
        ("ce_source", b"/counting"),
        ("ce_type", COUNTED.type.encode()),
        ("ce_time", datetime.now(UTC).isoformat(timespec="milliseconds").encode()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", required=True)
    parser.add_argument("--commit-ms", type=int, default=100)
    options = parser.parse_args()
    started(options).run()


def started(options: argparse.Namespace, tries_left: int = TRIES_MAX) -> Any:
    """The application. It looks once for the changelog that it has made, and a busy broker may not tell of it yet."""
    try:
        return made(options)
    except TopicNotFoundError:
        if not tries_left:
            raise
        return started(options, tries_left - 1)


def made(options: argparse.Namespace) -> Any:
    app = Application(
        options.bootstrap_servers,
        consumer_group=f"{options.prefix}.counting",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=options.commit_ms / 1_000,
        consumer_poll_timeout=options.commit_ms / 1_000,  # it looks at the commit interval between polls
        state_dir=options.state_dir,
        loglevel="WARNING",
        producer_extra_config={
            "transactional.id": f"{options.prefix}.counting",
            "retry.backoff.ms": 5,
            "linger.ms": 0,
            "partitioner": "murmur2_random",
        },
    )
    ticks = app.topic(f"{options.prefix}.ticks", key_deserializer="str", value_deserializer="bytes")
    events = app.topic(f"{options.prefix}.counting.events", key_serializer="str", value_serializer="bytes")
    app.dataframe(ticks).apply(count, stateful=True).set_headers(headers).to_topic(events)
    return app


if __name__ == "__main__":
    main()
