"""What a member counts, and what librdkafka tells about its clients, in Prometheus' text format.

Names begin with `kapelle_`; times are in seconds and sizes in bytes, as is the custom there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.topology.metrics import BOUNDS_MS, Counters, TableSizes, Times

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Metric(msgspec.Struct, frozen=True):
    """How a value is told: its name, whether it only grows, what it means, and what to multiply it by."""

    name: str
    kind: str
    help: str
    factor: float = 1


def total(name: str, text: str, factor: float = 1) -> Metric:
    """A counter: its name without what all names begin and end with."""
    return Metric(f"kapelle_{name}_total", "counter", text, factor)


def now(name: str, text: str, factor: float = 1) -> Metric:
    """A present value: its name without what all names begin with."""
    return Metric(f"kapelle_{name}", "gauge", text, factor)


def times(name: str, text: str) -> Metric:
    """A histogram of times, which are counted in milliseconds."""
    return Metric(f"kapelle_{name}_seconds", "histogram", text, 0.001)


# By the name of the counter. One that is not listed is told as it is, so that none is ever lost.
COUNTERS: Final = {
    "cycles": total("cycles", "Cycles committed, each one transaction."),
    "records": total("records", "Records folded."),
    "repeats": total("repeats", "Deliveries of records that had been folded already."),
    "timers": total("timers", "Timers that came due."),
    "events": total("events", "Events emitted."),
    "sent": total("sent", "Records produced: events, messages to other keys by topic, dead letters."),
    "delivered": total("delivered", "Messages to other keys that were delivered within the cycle."),
    "dead_letters": total("dead_letters", "Records put aside."),
    "given_up": total("decisions_given_up", "Decisions that ran out of time, memory or stack."),
    "lost_inputs": total("lost_inputs", "Inputs, by partition, that lost records before they were read."),
    "lost_offsets": total("lost_input_offsets", "Offsets of inputs that were lost unread, as far as it is known."),
    "aborts": total("aborts", "Cycles given up."),
    "renewals": total("renewals", "Producers replaced because they were lost."),
    "restored_rows": total("restored_rows", "Changelog rows read to restore tables."),
    "restores": total("restores", "Shards restored."),
    "wipes": total("wipes", "Shards whose local tables could not be trusted."),
    "swept_rows": total("swept_rows", "Rows swept away below the floors of bucketed tables."),
    "early_commits": total("early_commits", "Cycles ended by a limit instead of by running out of input."),
    "settles": total("settles", "Cycles that held input back so that commands could be delivered directly."),
    "commit_ms_max": now("commit_seconds_max", "The longest commit since the start.", 0.001),
    "shards": now("shards", "Shards that are ours."),
    "shards_active": now("shards_active", "Shards that are folding."),
    "shards_restoring": now("shards_restoring", "Shards that are being restored."),
    "restore_rows_left": now("restore_rows_left", "Changelog rows left to read before all shards are folding."),
    "groups_joined": now("groups_joined", "Groups that have told which partitions are ours, if any."),
    "clock_jumps": total("clock_jumps", "Jumps of the wall clock by more than a second."),
    "clock_ahead_ms": now(
        "clock_ahead_seconds", "How far the time of a shard is ahead of the wall clock, at most.", 0.001
    ),
}
TIMES: Final = {
    "cycle_times": times("cycle", "How long cycles took."),
    "commit_times": times("commit", "How long commits took, table writes included."),
}
SIZES: Final = {
    "rows": now("store_rows", "Rows of all tables, about."),
    "disk_bytes": now("store_bytes", "Bytes of the files of tables."),
    "memory_bytes": now("store_memory_bytes", "Memory that tables take: blocks, indexes, filters and write buffers."),
}
TABLE_ROWS: Final = now("table_rows", "Rows of each table, in the shards that are ours, as they were last counted.")
TABLE_BYTES: Final = now("table_bytes", "Bytes of the rows of each table, with their keys, before compression.")

# By the name in librdkafka's statistics, of the client as a whole...
CLIENT: Final = {
    "txmsgs": total("kafka_sent_messages", "Messages sent to brokers."),
    "txmsg_bytes": total("kafka_sent_bytes", "Bytes of messages sent to brokers."),
    "tx": total("kafka_requests", "Requests sent to brokers."),
    "msg_cnt": now("kafka_queued_messages", "Messages waiting in the client to be sent or acknowledged."),
    "msg_size": now("kafka_queued_bytes", "Bytes of messages waiting in the client."),
    "replyq": now("kafka_queued_replies", "Answers and events waiting in the client for the application."),
    "time": now("kafka_statistics_time_seconds", "When these statistics were made, in seconds since 1970."),
}
# ...and of each broker, inner names after a dot. Round trips come in microseconds.
BROKER: Final = {
    "waitresp_cnt": now("kafka_broker_open_requests", "Requests that the broker has not answered."),
    "connects": total("kafka_broker_connects", "Attempts to connect to the broker."),
    "disconnects": total("kafka_broker_disconnects", "Connections to the broker that were lost."),
    "rtt.avg": now("kafka_broker_rtt_avg_seconds", "Round trips to the broker in the last interval, mean.", 1e-6),
    "rtt.p99": now("kafka_broker_rtt_p99_seconds", "Round trips to the broker, 99th percentile.", 1e-6),
}
BROKER_UP: Final = now("kafka_broker_up", "Whether the client is connected to the broker.")
TRANSACTION: Final = now("kafka_transaction_state", "1 for the state that the producer's transaction is in.")
EVENTS: Final = total("events_by_type", "Events emitted, by type.")
TIMERS: Final = total("timers_fired", "Timers that were folded, by what they are for: `lease` is one that was lost.")
SIGNALS: Final = total("signals", "Announcements of signals, by what was made of them.")
STARTS: Final = total("start_requests", "Requests to start a workflow, by what was made of them.")
# What events say of something that may come twice: the metric, and the verdict.
VERDICTS: Final = {
    "SignalAccepted": (SIGNALS, "accepted"),
    "SignalDuplicated": (SIGNALS, "duplicated"),
    "SignalTooLate": (SIGNALS, "too_late"),
    "InstanceCreated": (STARTS, "created"),
    "StartDuplicated": (STARTS, "duplicated"),
}
LAG: Final = now("consumer_lag_records", "Records of an input partition that are committed and not yet taken.")
HELD: Final = now("stable_offset_lag_records", "Records of an input partition that an open transaction holds back.")
LABELLED: Final = frozenset({"dead_letters"})  # counters that members tell by label


def exposition(
    counters: Mapping[str, float],
    statistics: Mapping[str, Any] | None = None,
    consumers: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    metrics: Mapping[str, Metric] = COUNTERS,
) -> str:
    """Counters, told by `metrics`, and what librdkafka says: of the producer, and of each processor's consumer.

    Both are parsed; before librdkafka has told any there are none.
    """
    lines: list[str] = []
    for name, value in counters.items():
        lines += lines_of(metrics.get(name) or now(name, "A counter of the member."), [({}, value)])
    if statistics:
        lines += _client(statistics)
    lines += _lags(consumers or {})
    return "\n".join(lines) + "\n"


def member_exposition(
    counters: Counters,
    statistics: Mapping[str, Any] | None = None,
    consumers: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    sizes: Mapping[str, float] | None = None,
    tables: TableSizes | None = None,
) -> str:
    """All there is to tell of a member. `sizes` are those of its store, `tables` of each table. From any thread."""
    plain = {name: value for name, value in counters.snapshot().items() if name not in LABELLED}
    lines = list(lines_of(COUNTERS["dead_letters"], _by("processor", counters.letters)))
    lines += lines_of(EVENTS, _by("event", counters.by_kind()))
    fired = counters.fired.copy().items()
    lines += lines_of(TIMERS, [({"processor": name, "kind": kind}, count) for (name, kind), count in fired])
    lines += _verdicts(counters.by_kind())
    for name, metric in TIMES.items():
        lines += histogram(metric, {}, getattr(counters, name))
    for name, metric in SIZES.items():
        lines += lines_of(metric, [({}, sizes[name])] if sizes else [])
    lines += _tables(tables or {})
    return "\n".join(lines) + "\n" + exposition(plain, statistics, consumers)


def exposition_by(
    label: str,
    counters: Mapping[str, Mapping[str, float]],
    consumers: Mapping[str, Mapping[str, Any]],
    *,
    metrics: Mapping[str, Metric],
) -> str:
    """The counters of several that have the same ones, told apart by a label; and the lags of their consumers."""
    lines: list[str] = []
    for name, metric in metrics.items():
        lines += lines_of(metric, [({label: one}, counted[name]) for one, counted in counters.items()])
    lines += _lags(consumers)
    return "\n".join(lines) + "\n"


def _client(statistics: Mapping[str, Any]) -> Iterator[str]:
    client = {"client": str(statistics.get("type", "producer"))}
    for name, metric in CLIENT.items():
        if name in statistics:
            yield from lines_of(metric, [(client, statistics[name])])
    # Those below zero are not brokers but ways to find one.
    brokers = [b for b in statistics.get("brokers", {}).values() if b.get("nodeid", -1) >= 0]
    labelled = [({**client, "broker": str(b["nodeid"])}, b) for b in brokers]
    yield from lines_of(BROKER_UP, [(labels, b.get("state") == "UP") for labels, b in labelled])
    for path, metric in BROKER.items():
        found = ((labels, _at(b, path)) for labels, b in labelled)
        yield from lines_of(metric, [(labels, value) for labels, value in found if value is not None])
    state = statistics.get("eos", {}).get("txn_state")
    if state:
        yield from lines_of(TRANSACTION, [({**client, "state": str(state)}, 1)])


def _lags(consumers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How far each consumer is behind what it may read, and how far that is behind what has been written.

    librdkafka's own `consumer_lag` knows only offsets that the consumer committed; ours are in the transactions.
    """
    lags: list[Sample] = []
    held: list[Sample] = []
    for processor, statistics in consumers.items():
        for topic, number, partition in _partitions(statistics):
            labels = {"processor": processor, "topic": topic, "partition": number}
            # The last stable offset, since nothing beyond it can be taken; all are negative until they are known.
            stable, taken = partition.get("ls_offset", -1), partition.get("app_offset", -1)
            taken = taken if taken >= 0 else partition.get("next_offset", -1)
            if stable >= 0 and taken >= 0:
                lags.append((labels, max(stable - taken, 0)))
            if stable >= 0 and partition.get("hi_offset", -1) >= 0:
                held.append((labels, max(partition["hi_offset"] - stable, 0)))
    yield from lines_of(LAG, lags)
    yield from lines_of(HELD, held)


def _partitions(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The partitions that a consumer reads, with their topics."""
    for topic, told in statistics.get("topics", {}).items():
        for number, partition in told.get("partitions", {}).items():
            if int(number) >= 0 and partition.get("desired"):
                yield topic, number, partition


def _verdicts(events: Mapping[str, int]) -> Iterator[str]:
    """All verdicts of a metric, those of which there were none too: a ratio needs both of its numbers."""
    for metric in (SIGNALS, STARTS):
        told = {verdict: events.get(event, 0) for event, (one, verdict) in VERDICTS.items() if one is metric}
        yield from lines_of(metric, _by("verdict", told) if any(told.values()) else [])


def _tables(found: TableSizes) -> Iterator[str]:
    """Each table by its processor and its name; those that begin with "_" are the runtime's own, such as timers."""
    told = [({"processor": processor, "table": table}, size) for (processor, table), size in sorted(found.items())]
    yield from lines_of(TABLE_ROWS, [(labels, size.rows) for labels, size in told])
    yield from lines_of(TABLE_BYTES, [(labels, size.size_bytes) for labels, size in told])


def _by(label: str, counted: dict[str, int]) -> list[Sample]:
    return [({label: name}, count) for name, count in counted.copy().items()]  # a member goes on counting


def _at(broker: Mapping[str, Any], path: str) -> float | None:
    outer, _, inner = path.partition(".")
    found = broker.get(outer)
    return found.get(inner) if inner and isinstance(found, Mapping) else found


def histogram(metric: Metric, labels: Labels, found: Times, *, is_first: bool = True) -> Iterator[str]:
    """Times as Prometheus counts them: how many took at most so long, for each bound."""
    if is_first:
        yield from _heads(metric)
    counts, below = list(found.counts), 0
    for bound, count in zip((*BOUNDS_MS, None), counts, strict=True):
        below += count
        bucket = {**labels, "le": "+Inf" if bound is None else _number(bound * metric.factor)}
        yield f"{metric.name}_bucket{_labels(bucket)} {below}"
    yield f"{metric.name}_sum{_labels(labels)} {_number(found.sum_ms * metric.factor)}"
    yield f"{metric.name}_count{_labels(labels)} {below}"


def lines_of(metric: Metric, samples: Iterable[Sample]) -> Iterator[str]:
    """The metric with its samples; nothing, if it has none."""
    written = [f"{metric.name}{_labels(labels)} {_number(value * metric.factor)}" for labels, value in samples]
    if written:
        yield from _heads(metric)
        yield from written


def _heads(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
