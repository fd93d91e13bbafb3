"""What a member counts and what librdkafka tells, as Prometheus reads it."""

import re
from typing import Any

import pytest

from kapelle.schemas import contracts as c
from kapelle.topology.exposition import COUNTERS, TIMES, exposition, member_exposition
from kapelle.topology.metrics import BOUNDS_MS, KINDS_MAX, Counters, TableSize, Times
from tests.unit.worker.samples import started, step

LINE = re.compile(r"([a-z0-9_]+)(?:\{((?:[a-z]+=\"[^\"]*\",?)*)\})? (-?[0-9.e+-]+)")

# What librdkafka 2.16 says of a transactional producer, less what nobody looks at.
STATISTICS: dict[str, Any] = {
    "name": "rdkafka#producer-1",
    "type": "producer",
    "time": 1_782_907_200,
    "replyq": 2,
    "msg_cnt": 17,
    "msg_size": 1_700,
    "tx": 120,
    "txmsgs": 9_000,
    "txmsg_bytes": 900_000,
    "rxmsgs": 0,
    "brokers": {
        "kafka-1:9092/1": {
            "name": "kafka-1:9092/1",
            "nodeid": 1,
            "state": "UP",
            "waitresp_cnt": 3,
            "connects": 2,
            "disconnects": 1,
            "rtt": {"min": 300, "avg": 1_250, "p99": 4_000},
        },
        "kafka-2:9092/2": {"name": "kafka-2:9092/2", "nodeid": 2, "state": "DOWN", "waitresp_cnt": 0},
        "kafka-1:9092/bootstrap": {"name": "kafka-1:9092/bootstrap", "nodeid": -1, "state": "UP", "waitresp_cnt": 9},
        "TxnCoordinator": {"name": "TxnCoordinator", "nodeid": -1, "state": "UP"},
    },
    "eos": {"idemp_state": "Assigned", "txn_state": "InTransaction"},
}


def samples(text: str) -> dict[tuple[str, str], float]:
    """Every sample by name and labels. A line that is neither a sample nor a comment fails."""
    found: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            matched = LINE.fullmatch(line)
            assert matched is not None, line
            name, labels, value = matched.groups()
            assert (name, labels or "") not in found, f"{line} is told twice"
            found[name, labels or ""] = float(value)
    return found


# What it says of a consumer's partitions: one that is read, one that was just assigned, one that is another member's.
CONSUMER: dict[str, Any] = {
    "topics": {
        "k.ticks": {
            "partitions": {
                "0": {"desired": True, "ls_offset": 120, "hi_offset": 125, "app_offset": 100, "next_offset": 110},
                "1": {"desired": True, "ls_offset": 7, "hi_offset": 7, "app_offset": -1001, "next_offset": 7},
                "2": {"desired": True, "ls_offset": -1001, "hi_offset": -1001, "app_offset": -1001, "next_offset": 0},
                "3": {"desired": False, "ls_offset": 9, "app_offset": 3, "next_offset": 3},
                "-1": {"desired": False, "ls_offset": -1001, "app_offset": -1001},
            }
        }
    }
}


def test_every_counter_of_a_member_has_a_name_and_a_meaning() -> None:
    assert set(Counters().snapshot()) == set(COUNTERS), "tell the new counter in exposition.COUNTERS"


def test_totals_and_present_values_are_told_with_their_types() -> None:
    text = exposition(Counters(records=12, shards_active=4).snapshot())

    assert "# HELP kapelle_records_total Records folded.\n# TYPE kapelle_records_total counter\n" in text
    assert "# TYPE kapelle_shards_active gauge\n" in text
    assert samples(text)["kapelle_records_total", ""] == 12
    assert samples(text)["kapelle_shards_active", ""] == 4


def test_events_are_told_by_their_type() -> None:
    found = samples(member_exposition(Counters(kinds={Times: 7, Counters: 1})))

    assert found["kapelle_events_by_type_total", 'event="Times"'] == 7
    assert found["kapelle_events_by_type_total", 'event="Counters"'] == 1


class SignalAccepted:
    """Stands for the event of that name."""


def test_verdicts_are_told_with_those_of_which_there_were_none() -> None:
    found = samples(member_exposition(Counters(kinds={SignalAccepted: 7})))

    assert found["kapelle_signals_total", 'verdict="accepted"'] == 7
    assert found["kapelle_signals_total", 'verdict="duplicated"'] == 0
    assert found["kapelle_signals_total", 'verdict="too_late"'] == 0
    assert ("kapelle_start_requests_total", 'verdict="created"') not in found


def ticked(*instances: int | None, passed_over: int = 0, late_ms: int = 0) -> c.ScheduleTicked:
    ticks = tuple(
        c.Tick(scheduled_at_ms=at, request_id=str(at), instance_id=id_, late_ms=late_ms)
        for at, id_ in enumerate(instances)
    )
    return c.ScheduleTicked("etl", "daily", ticks, passed_over=passed_over, after_ms=0, at_ms=0)


def test_ticks_are_told_by_what_became_of_them_with_how_late_they_were() -> None:
    counters = Counters()
    gone = c.DisarmedSchedule("daily", reason="paused", missed=2, after_ms=0)
    events = (
        ticked(1, 2, None, passed_over=7, late_ms=40_000),
        ticked(3, late_ms=20),
        ticked(passed_over=1),
        c.SchedulesArmed("etl", 1, (), disarmed=(gone,), at_ms=0),
    )
    for event in events:
        counters.emit(event)

    found = samples(member_exposition(counters))

    fates = {"started": 3, "refused": 1, "passed_over": 8, "not_armed": 2}
    assert {fate: found["kapelle_schedule_ticks_total", f'fate="{fate}"'] for fate in fates} == fates
    assert found["kapelle_schedule_lateness_seconds_count", ""] == 4
    assert found["kapelle_schedule_lateness_seconds_bucket", 'le="0.025"'] == 1
    assert found["kapelle_schedule_lateness_seconds_sum", ""] == pytest.approx(120.02)


def test_dead_letters_are_told_by_processor_and_not_once_more() -> None:
    counters = Counters(letters={"counting": 0, "joining": 0})
    counters.put_aside("joining")

    found = samples(member_exposition(counters))

    assert found["kapelle_dead_letters_total", 'processor="counting"'] == 0
    assert found["kapelle_dead_letters_total", 'processor="joining"'] == 1
    assert ("kapelle_dead_letters_total", "") not in found
    assert counters.dead_letters == 1


def test_timers_are_told_by_what_they_are_for_and_those_without_end_as_others() -> None:
    counters = Counters()
    for name in ("load", "save"):
        counters.fire("runs", f"lease/{name}")
    for number in range(2 * KINDS_MAX):
        counters.fire("mine", f"timer-{number}")

    found = samples(member_exposition(counters))

    assert found["kapelle_timers_fired_total", 'processor="runs",kind="lease"'] == 2
    assert found["kapelle_timers_fired_total", 'processor="mine",kind="other"'] == KINDS_MAX + 1
    assert len([name for name, _ in found if name == "kapelle_timers_fired_total"]) == KINDS_MAX + 1


def test_a_lease_that_was_lost_is_told() -> None:
    engine, (run,) = started(step())
    engine.task(run, "load").begin()
    engine.advance(10 * 60_000)

    found = samples(member_exposition(engine.runtime.counters))

    assert found["kapelle_timers_fired_total", 'processor="runs",kind="lease"'] == 1


def test_times_are_told_in_seconds() -> None:
    found = samples(member_exposition(Counters(commit_ms_max=31.25)))

    assert found["kapelle_commit_seconds_max", ""] == pytest.approx(0.03125)


def test_a_histogram_counts_what_took_at_most_so_long_and_is_whole() -> None:
    counters = Counters()
    for took_ms in (0.5, 2, 3, 40, 99_999):
        counters.commit_times.add(took_ms)

    found = samples(member_exposition(counters))

    buckets = {labels: count for (name, labels), count in found.items() if name == "kapelle_commit_seconds_bucket"}
    assert list(buckets) == [*(f'le="{bound / 1000:g}"' for bound in BOUNDS_MS), 'le="+Inf"']
    assert list(buckets.values()) == sorted(buckets.values())
    assert (buckets['le="0.002"'], buckets['le="0.005"'], buckets['le="0.05"'], buckets['le="+Inf"']) == (2, 3, 4, 5)
    assert found["kapelle_commit_seconds_count", ""] == 5
    assert found["kapelle_commit_seconds_sum", ""] == pytest.approx(100.0445)


def test_every_histogram_of_a_member_is_told() -> None:
    found = {name for name, _ in samples(member_exposition(Counters()))}

    assert {f"{metric.name}{part}" for metric in TIMES.values() for part in ("_bucket", "_sum", "_count")} <= found


def test_the_size_of_the_store_is_told_where_there_is_one() -> None:
    sizes = {"rows": 1_000, "disk_bytes": 2_000_000, "memory_bytes": 3_000_000}

    found = samples(member_exposition(Counters(), sizes=sizes))

    assert found["kapelle_store_rows", ""] == 1_000
    assert found["kapelle_store_bytes", ""] == 2_000_000
    assert found["kapelle_store_memory_bytes", ""] == 3_000_000
    assert "kapelle_store" not in member_exposition(Counters())


def test_the_size_of_each_table_is_told_by_its_processor() -> None:
    tables = {("runs", "steps"): TableSize(1_000, 250_000), ("runs", "_timers"): TableSize(0, 0)}

    found = samples(member_exposition(Counters(), tables=tables))

    assert found["kapelle_table_rows", 'processor="runs",table="steps"'] == 1_000
    assert found["kapelle_table_bytes", 'processor="runs",table="steps"'] == 250_000
    assert found["kapelle_table_rows", 'processor="runs",table="_timers"'] == 0
    assert "kapelle_table" not in member_exposition(Counters())


def test_a_counter_that_nobody_named_is_told_all_the_same() -> None:
    assert samples(exposition({"surprises": 3}))["kapelle_surprises", ""] == 3


def test_without_statistics_only_the_counters_are_told() -> None:
    assert exposition({"records": 1}, {}) == exposition({"records": 1})
    assert "kafka" not in exposition(Counters().snapshot(), {})


def test_the_client_is_told_as_a_whole() -> None:
    found = samples(exposition({}, STATISTICS))

    assert found["kapelle_kafka_sent_messages_total", 'client="producer"'] == 9_000
    assert found["kapelle_kafka_sent_bytes_total", 'client="producer"'] == 900_000
    assert found["kapelle_kafka_queued_messages", 'client="producer"'] == 17
    assert found["kapelle_kafka_queued_bytes", 'client="producer"'] == 1_700
    assert found["kapelle_kafka_statistics_time_seconds", 'client="producer"'] == 1_782_907_200


def test_each_broker_is_told_and_ways_to_find_one_are_not() -> None:
    found = samples(exposition({}, STATISTICS))

    one, two = 'client="producer",broker="1"', 'client="producer",broker="2"'
    assert {labels for name, labels in found if name == "kapelle_kafka_broker_up"} == {one, two}
    assert (found["kapelle_kafka_broker_up", one], found["kapelle_kafka_broker_up", two]) == (1, 0)
    assert found["kapelle_kafka_broker_open_requests", one] == 3
    assert found["kapelle_kafka_broker_rtt_avg_seconds", one] == pytest.approx(0.00125)
    assert found["kapelle_kafka_broker_rtt_p99_seconds", one] == pytest.approx(0.004)


def test_a_broker_that_has_not_answered_has_no_round_trip() -> None:
    found = samples(exposition({}, STATISTICS))

    assert ("kapelle_kafka_broker_rtt_avg_seconds", 'client="producer",broker="2"') not in found


def test_the_state_of_the_transaction_is_a_label() -> None:
    found = samples(exposition({}, STATISTICS))

    assert found["kapelle_kafka_transaction_state", 'client="producer",state="InTransaction"'] == 1


def test_a_label_may_hold_anything() -> None:
    text = exposition({}, {"type": 'a "quoted"\\ name\n', "txmsgs": 1})

    assert r'kapelle_kafka_sent_messages_total{client="a \"quoted\"\\ name\n"} 1' in text


def test_help_and_type_stand_once_before_the_samples_of_a_name() -> None:
    lines = member_exposition(Counters(), STATISTICS).splitlines()
    helped = [line.split(" ")[2] for line in lines if line.startswith("# HELP ")]
    typed = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]

    assert helped == typed
    assert len(set(helped)) == len(helped)
    told = {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}
    assert set(helped) == {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in told}


def test_the_lag_of_each_partition_is_told_once_it_is_known() -> None:
    found = samples(exposition({}, None, {"counting": CONSUMER}))

    assert found == {
        ("kapelle_consumer_lag_records", 'processor="counting",topic="k.ticks",partition="0"'): 20,
        ("kapelle_consumer_lag_records", 'processor="counting",topic="k.ticks",partition="1"'): 0,
        ("kapelle_stable_offset_lag_records", 'processor="counting",topic="k.ticks",partition="0"'): 5,
        ("kapelle_stable_offset_lag_records", 'processor="counting",topic="k.ticks",partition="1"'): 0,
    }
