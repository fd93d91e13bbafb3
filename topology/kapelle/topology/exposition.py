"""The counters of a member and the statistics of librdkafka, in the Prometheus text format.

Names begin with `kapelle_`. Times are in seconds and sizes in bytes, as Prometheus recommends.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.topology.metrics import BOUNDS_MS, Counters, TableSizes, Times

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
Statistics = Mapping[str, Any]  # the JSON that librdkafka reports, of any depth


class Metric(msgspec.Struct, frozen=True):
    """A metric: its name, its kind, its help text, and the factor from the counted unit to the exposed one."""

    name: str
    kind: str
    help: str
    factor: float = 1


def total(name: str, text: str, factor: float = 1) -> Metric:
    """A counter. `name` has neither the prefix `kapelle_` nor the suffix `_total`."""
    return Metric(f"kapelle_{name}_total", "counter", text, factor)


def now(name: str, text: str, factor: float = 1) -> Metric:
    """A gauge. `name` does not have the prefix `kapelle_`."""
    return Metric(f"kapelle_{name}", "gauge", text, factor)


def times(name: str, text: str) -> Metric:
    """A histogram of times that are counted in milliseconds."""
    return Metric(f"kapelle_{name}_seconds", "histogram", text, 0.001)


# By the name of the counter. A counter that is not listed is exposed as a gauge, so that none is lost.
COUNTERS: Final = {
    "cycles": total("cycles", "Committed cycles. Each cycle is one transaction."),
    "records": total("records", "Records folded."),
    "repeats": total("repeats", "Redelivered records that were already folded."),
    "timers": total("timers", "Timers that fired."),
    "events": total("events", "Emitted events."),
    "sent": total("sent", "Produced records: events, messages sent through topics, and dead letters."),
    "delivered": total("delivered", "Messages between processors that were delivered within the cycle."),
    "dead_letters": total("dead_letters", "Records that were written to the dead-letter topic."),
    "given_up": total("decisions_given_up", "Decisions that ran out of time, memory or stack."),
    "lost_inputs": total("lost_inputs", "Input partitions that lost records before they were read."),
    "lost_offsets": total("lost_input_offsets", "Known number of input offsets that were lost before they were read."),
    "aborts": total("aborts", "Aborted cycles."),
    "renewals": total("renewals", "Producers that were replaced after a fatal error or an unanswered commit."),
    "restored_rows": total("restored_rows", "Changelog rows that were read to restore tables."),
    "restores": total("restores", "Shards restored."),
    "wipes": total("wipes", "Shards whose local tables were deleted because they could not be trusted."),
    "swept_rows": total("swept_rows", "Expired rows that were deleted from bucketed tables."),
    "early_commits": total("early_commits", "Cycles that ended at a limit before the input was exhausted."),
    "settles": total("settles", "Cycles that held back outside input so that commands could be delivered directly."),
    "commit_ms_max": now("commit_seconds_max", "Longest commit since the process started.", 0.001),
    "shards": now("shards", "Shards assigned to this member."),
    "shards_active": now("shards_active", "Shards that are folding."),
    "shards_restoring": now("shards_restoring", "Shards that are restoring."),
    "restore_rows_left": now(
        "restore_rows_left", "Changelog rows that remain to be read before all shards are folding."
    ),
    "groups_joined": now("groups_joined", "Consumer groups that this member has joined."),
    "clock_jumps": total("clock_jumps", "Wall clock jumps of more than one second."),
    "clock_ahead_ms": now("clock_ahead_seconds", "Largest lead of a shard's time over the wall clock.", 0.001),
}
TIMES: Final = {
    "cycle_times": times("cycle", "Duration of cycles."),
    "commit_times": times("commit", "Duration of commits, table writes included."),
    "lateness": times("schedule_lateness", "How late ticks of time triggers start."),
}
SIZES: Final = {
    "rows": now("store_rows", "Estimated number of rows in all tables."),
    "disk_bytes": now("store_bytes", "Size of the table files on disk."),
    "memory_bytes": now("store_memory_bytes", "Memory used by tables: blocks, indexes, filters and write buffers."),
}
TABLE_ROWS: Final = now("table_rows", "Rows of each table in the shards of this member, at the last count.")
TABLE_BYTES: Final = now("table_bytes", "Size of the rows of each table, keys included, before compression.")

# By the name in librdkafka's statistics: first of the client as a whole,
CLIENT: Final = {
    "txmsgs": total("kafka_sent_messages", "Messages sent to brokers."),
    "txmsg_bytes": total("kafka_sent_bytes", "Bytes of messages sent to brokers."),
    "tx": total("kafka_requests", "Requests sent to brokers."),
    "msg_cnt": now("kafka_queued_messages", "Messages waiting in the client to be sent or acknowledged."),
    "msg_size": now("kafka_queued_bytes", "Bytes of messages waiting in the client."),
    "replyq": now("kafka_queued_replies", "Replies and events waiting in the client for the application."),
    "time": now("kafka_statistics_time_seconds", "Time of these statistics, in seconds since 1970."),
}
# then of each broker, with inner names after a dot. librdkafka reports round trips in microseconds.
BROKER: Final = {
    "waitresp_cnt": now("kafka_broker_open_requests", "Requests that the broker has not answered."),
    "connects": total("kafka_broker_connects", "Attempts to connect to the broker."),
    "disconnects": total("kafka_broker_disconnects", "Lost connections to the broker."),
    "rtt.avg": now("kafka_broker_rtt_avg_seconds", "Mean round-trip time to the broker in the last interval.", 1e-6),
    "rtt.p99": now("kafka_broker_rtt_p99_seconds", "99th percentile of the round-trip time to the broker.", 1e-6),
}
BROKER_UP: Final = now("kafka_broker_up", "1 if the client is connected to the broker, else 0.")
TRANSACTION: Final = now("kafka_transaction_state", "1 for the current state of the producer's transaction.")
EVENTS: Final = total("events_by_type", "Emitted events, by type.")
TIMERS: Final = total("timers_fired", "Fired timers, by kind. The kind `lease` counts leases that expired.")
SIGNALS: Final = total("signals", "Announcements of signals, by verdict.")
STARTS: Final = total("start_requests", "Requests to start a workflow, by verdict.")
TICKS: Final = total("schedule_ticks", "Ticks of time triggers: started, refused, passed_over, or not_armed.")
# The events that answer a message which may arrive twice, with their metric and verdict.
VERDICTS: Final = {
    "SignalAccepted": (SIGNALS, "accepted"),
    "SignalDuplicated": (SIGNALS, "duplicated"),
    "SignalTooLate": (SIGNALS, "too_late"),
    "InstanceCreated": (STARTS, "created"),
    "StartDuplicated": (STARTS, "duplicated"),
}
LAG: Final = now("consumer_lag_records", "Committed records of an input partition that the consumer has not read yet.")
HELD: Final = now("stable_offset_lag_records", "Records of an input partition that wait behind an open transaction.")
LABELLED: Final = frozenset({"dead_letters"})  # counters that are exposed by label


def exposition(
    counters: Mapping[str, float],
    statistics: Statistics | None = None,
    consumers: Mapping[str, Statistics] | None = None,
    *,
    metrics: Mapping[str, Metric] = COUNTERS,
) -> str:
    """Counters, as `metrics` describes them, and the statistics of the producer and of each processor's consumer.

    The statistics are parsed. Before librdkafka has reported, there are none.
    """
    lines: list[str] = []
    for name, value in counters.items():
        lines += lines_of(metrics.get(name) or now(name, "An internal counter of the member."), [({}, value)])
    if statistics:
        lines += _client(statistics)
    lines += _lags(consumers or {})
    return "\n".join(lines) + "\n"


def member_exposition(
    counters: Counters,
    statistics: Statistics | None = None,
    consumers: Mapping[str, Statistics] | None = None,
    *,
    sizes: Mapping[str, float] | None = None,
    tables: TableSizes | None = None,
) -> str:
    """All metrics of a member. `sizes` are those of its store, `tables` of each table. Safe to call from any thread."""
    plain = {name: value for name, value in counters.snapshot().items() if name not in LABELLED}
    lines = list(lines_of(COUNTERS["dead_letters"], _by("processor", counters.letters)))
    lines += lines_of(EVENTS, _by("event", counters.by_kind()))
    fired = counters.fired.copy().items()
    lines += lines_of(TIMERS, [({"processor": name, "kind": kind}, count) for (name, kind), count in fired])
    lines += _verdicts(counters.by_kind())
    lines += lines_of(TICKS, _by("fate", counters.ticks))
    for name, metric in TIMES.items():
        lines += histogram(metric, {}, getattr(counters, name))
    for name, metric in SIZES.items():
        lines += lines_of(metric, [({}, sizes[name])] if sizes else [])
    lines += _tables(tables or {})
    return "\n".join(lines) + "\n" + exposition(plain, statistics, consumers)


def exposition_by(
    label: str,
    counters: Mapping[str, Mapping[str, float]],
    consumers: Mapping[str, Statistics],
    *,
    metrics: Mapping[str, Metric],
) -> str:
    """The counters of several objects, distinguished by a label, and the lags of their consumers."""
    lines: list[str] = []
    for name, metric in metrics.items():
        lines += lines_of(metric, [({label: value}, counted[name]) for value, counted in counters.items()])
    lines += _lags(consumers)
    return "\n".join(lines) + "\n"


def _client(statistics: Statistics) -> Iterator[str]:
    client = {"client": str(statistics.get("type", "producer"))}
    for name, metric in CLIENT.items():
        if name in statistics:
            yield from lines_of(metric, [(client, statistics[name])])
    # Ids below zero are bootstrap addresses, not brokers.
    brokers = [b for b in statistics.get("brokers", {}).values() if b.get("nodeid", -1) >= 0]
    labelled = [({**client, "broker": str(b["nodeid"])}, b) for b in brokers]
    yield from lines_of(BROKER_UP, [(labels, b.get("state") == "UP") for labels, b in labelled])
    for path, metric in BROKER.items():
        samples = ((labels, _at(b, path)) for labels, b in labelled)
        yield from lines_of(metric, [(labels, value) for labels, value in samples if value is not None])
    state = statistics.get("eos", {}).get("txn_state")
    if state:
        yield from lines_of(TRANSACTION, [({**client, "state": str(state)}, 1)])


def _lags(consumers: Mapping[str, Statistics]) -> Iterator[str]:
    """The lag of each consumer behind the last stable offset, and the lag of that behind the end of the partition.

    librdkafka's own `consumer_lag` knows only offsets that the consumer committed. Here transactions commit them.
    """
    lags: list[Sample] = []
    held: list[Sample] = []
    for processor, statistics in consumers.items():
        for topic, number, partition in _partitions(statistics):
            labels = {"processor": processor, "topic": topic, "partition": number}
            # Nothing beyond the last stable offset can be read. Offsets are negative until they are known.
            stable, taken = partition.get("ls_offset", -1), partition.get("app_offset", -1)
            taken = taken if taken >= 0 else partition.get("next_offset", -1)
            if stable >= 0 and taken >= 0:
                lags.append((labels, max(stable - taken, 0)))
            if stable >= 0 and partition.get("hi_offset", -1) >= 0:
                held.append((labels, max(partition["hi_offset"] - stable, 0)))
    yield from lines_of(LAG, lags)
    yield from lines_of(HELD, held)


def _partitions(statistics: Statistics) -> Iterator[tuple[str, str, Statistics]]:
    """The partitions that a consumer reads, with their topics."""
    for topic, topic_statistics in statistics.get("topics", {}).items():
        for number, partition in topic_statistics.get("partitions", {}).items():
            if int(number) >= 0 and partition.get("desired"):
                yield topic, number, partition


def _verdicts(events: Mapping[str, int]) -> Iterator[str]:
    """All verdicts of a metric, also those with a count of zero: a ratio needs both of its numbers."""
    for metric in (SIGNALS, STARTS):
        counted = {verdict: events.get(event, 0) for event, (counter, verdict) in VERDICTS.items() if counter is metric}
        yield from lines_of(metric, _by("verdict", counted) if any(counted.values()) else [])


def _tables(sizes: TableSizes) -> Iterator[str]:
    """Each table by processor and name. Tables whose name begins with "_" belong to the runtime, such as timers."""
    samples = [({"processor": processor, "table": table}, size) for (processor, table), size in sorted(sizes.items())]
    yield from lines_of(TABLE_ROWS, [(labels, size.rows) for labels, size in samples])
    yield from lines_of(TABLE_BYTES, [(labels, size.size_bytes) for labels, size in samples])


def _by(label: str, counted: dict[str, int]) -> list[Sample]:
    return [({label: name}, count) for name, count in counted.copy().items()]  # a member goes on counting


def _at(broker: Statistics, path: str) -> float | None:
    outer, _, inner = path.partition(".")
    value = broker.get(outer)
    return value.get(inner) if inner and isinstance(value, Mapping) else value


def histogram(metric: Metric, labels: Labels, times: Times, *, is_first: bool = True) -> Iterator[str]:
    """A histogram as Prometheus defines it: for each bound, the count of times up to it."""
    if is_first:
        yield from _heads(metric)
    counts, below = list(times.counts), 0
    for bound, count in zip((*BOUNDS_MS, None), counts, strict=True):
        below += count
        bucket = {**labels, "le": "+Inf" if bound is None else _number(bound * metric.factor)}
        yield f"{metric.name}_bucket{_labels(bucket)} {below}"
    yield f"{metric.name}_sum{_labels(labels)} {_number(times.sum_ms * metric.factor)}"
    yield f"{metric.name}_count{_labels(labels)} {below}"


def lines_of(metric: Metric, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of a metric with its samples. No samples give no lines."""
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
