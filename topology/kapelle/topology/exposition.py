"""What a member counts, and what librdkafka tells about its producer, in Prometheus' text format.

Names begin with `kapelle_`; times are in seconds and sizes in bytes, as is the custom there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Metric(msgspec.Struct, frozen=True):
    """How a value is told: its name, whether it only grows, what it means, and what to multiply it by."""

    name: str
    kind: str
    help: str
    factor: float = 1


def _total(name: str, text: str, factor: float = 1) -> Metric:
    return Metric(f"kapelle_{name}_total", "counter", text, factor)


def _now(name: str, text: str, factor: float = 1) -> Metric:
    return Metric(f"kapelle_{name}", "gauge", text, factor)


# By the name of the counter. One that is not listed is told as it is, so that none is ever lost.
COUNTERS: Final = {
    "cycles": _total("cycles", "Cycles committed, each one transaction."),
    "records": _total("records", "Records folded."),
    "repeats": _total("repeats", "Deliveries of records that had been folded already."),
    "timers": _total("timers", "Timers that came due."),
    "events": _total("events", "Events emitted."),
    "sent": _total("sent", "Records produced: events, messages to other keys by topic, dead letters."),
    "delivered": _total("delivered", "Messages to other keys that were delivered within the cycle."),
    "dead_letters": _total("dead_letters", "Records put aside."),
    "aborts": _total("aborts", "Cycles given up."),
    "renewals": _total("renewals", "Producers replaced because they were lost."),
    "restored_rows": _total("restored_rows", "Changelog rows read to restore tables."),
    "restores": _total("restores", "Shards restored."),
    "wipes": _total("wipes", "Shards whose local tables could not be trusted."),
    "swept_rows": _total("swept_rows", "Rows swept away below the floors of bucketed tables."),
    "early_commits": _total("early_commits", "Cycles ended by a limit instead of by running out of input."),
    "settles": _total("settles", "Cycles that held input back so that commands could be delivered directly."),
    "cycle_ms": _total("cycle_seconds", "Time in cycles.", 0.001),
    "commit_ms": _total("commit_seconds", "Time in commits, table writes included.", 0.001),
    "commit_ms_max": _now("commit_seconds_max", "The longest commit since the start.", 0.001),
    "shards_active": _now("shards_active", "Shards that are folding."),
    "shards_restoring": _now("shards_restoring", "Shards that are being restored."),
    "restore_rows_left": _now("restore_rows_left", "Changelog rows left to read before all shards are folding."),
}

# By the name in librdkafka's statistics, of the client as a whole...
CLIENT: Final = {
    "txmsgs": _total("kafka_sent_messages", "Messages sent to brokers."),
    "txmsg_bytes": _total("kafka_sent_bytes", "Bytes of messages sent to brokers."),
    "rxmsgs": _total("kafka_received_messages", "Messages received from brokers by this client."),
    "tx": _total("kafka_requests", "Requests sent to brokers."),
    "msg_cnt": _now("kafka_queued_messages", "Messages waiting in the client to be sent or acknowledged."),
    "msg_size": _now("kafka_queued_bytes", "Bytes of messages waiting in the client."),
    "replyq": _now("kafka_queued_replies", "Answers and events waiting in the client for the application."),
    "time": _now("kafka_statistics_time_seconds", "When these statistics were made, in seconds since 1970."),
}
# ...and of each broker, inner names after a dot. Round trips come in microseconds.
BROKER: Final = {
    "outbuf_cnt": _now("kafka_broker_queued_requests", "Requests waiting to be sent to the broker."),
    "waitresp_cnt": _now("kafka_broker_open_requests", "Requests that the broker has not answered."),
    "txerrs": _total("kafka_broker_send_errors", "Failed attempts to send to the broker."),
    "rxerrs": _total("kafka_broker_receive_errors", "Failed attempts to read from the broker."),
    "rtt.avg": _now("kafka_broker_rtt_avg_seconds", "Round trips to the broker in the last interval, mean.", 1e-6),
    "rtt.p99": _now("kafka_broker_rtt_p99_seconds", "Round trips to the broker, 99th percentile.", 1e-6),
}
BROKER_UP: Final = _now("kafka_broker_up", "Whether the client is connected to the broker.")
TRANSACTION: Final = _now("kafka_transaction_state", "1 for the state that the producer's transaction is in.")


def exposition(counters: Mapping[str, float], statistics: Mapping[str, Any] | None = None) -> str:
    """All metrics. `statistics` are librdkafka's, parsed; before it has told any there are none."""
    lines: list[str] = []
    for name, value in counters.items():
        lines += _lines(COUNTERS.get(name) or _now(name, "A counter of the member."), [({}, value)])
    if statistics:
        lines += _client(statistics)
    return "\n".join(lines) + "\n"


def _client(statistics: Mapping[str, Any]) -> Iterator[str]:
    client = {"client": str(statistics.get("type", "producer"))}
    for name, metric in CLIENT.items():
        if name in statistics:
            yield from _lines(metric, [(client, statistics[name])])
    # Those below zero are not brokers but ways to find one.
    brokers = [b for b in statistics.get("brokers", {}).values() if b.get("nodeid", -1) >= 0]
    labelled = [({**client, "broker": str(b["nodeid"])}, b) for b in brokers]
    yield from _lines(BROKER_UP, [(labels, b.get("state") == "UP") for labels, b in labelled])
    for path, metric in BROKER.items():
        found = ((labels, _at(b, path)) for labels, b in labelled)
        yield from _lines(metric, [(labels, value) for labels, value in found if value is not None])
    state = statistics.get("eos", {}).get("txn_state")
    if state:
        yield from _lines(TRANSACTION, [({**client, "state": str(state)}, 1)])


def _at(broker: Mapping[str, Any], path: str) -> float | None:
    outer, _, inner = path.partition(".")
    found = broker.get(outer)
    return found.get(inner) if inner and isinstance(found, Mapping) else found


def _lines(metric: Metric, samples: Iterable[Sample]) -> Iterator[str]:
    """The metric with its samples; nothing, if it has none."""
    written = [f"{metric.name}{_labels(labels)} {_number(value * metric.factor)}" for labels, value in samples]
    if written:
        yield f"# HELP {metric.name} {metric.help}"
        yield f"# TYPE {metric.name} {metric.kind}"
        yield from written


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
