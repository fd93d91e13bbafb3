"""What a member counts and what librdkafka tells, as Prometheus reads it."""

import re
from typing import Any

import pytest

from kapelle.topology.exposition import COUNTERS, exposition
from kapelle.topology.metrics import Counters

LINE = re.compile(r"([a-z0-9_]+)(?:\{([^}]*)\})? (-?[0-9.e+-]+)")

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
            "outbuf_cnt": 0,
            "waitresp_cnt": 3,
            "txerrs": 1,
            "rxerrs": 0,
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


def test_every_counter_of_a_member_has_a_name_and_a_meaning() -> None:
    assert set(Counters.__struct_fields__) == set(COUNTERS), "tell the new counter in exposition.COUNTERS"


def test_totals_and_present_values_are_told_with_their_types() -> None:
    text = exposition(Counters(records=12, shards_active=4).snapshot())

    assert "# HELP kapelle_records_total Records folded.\n# TYPE kapelle_records_total counter\n" in text
    assert "# TYPE kapelle_shards_active gauge\n" in text
    assert samples(text)["kapelle_records_total", ""] == 12
    assert samples(text)["kapelle_shards_active", ""] == 4


def test_times_are_told_in_seconds() -> None:
    found = samples(exposition(Counters(cycle_ms=1_500.0, commit_ms=250.5, commit_ms_max=31.25).snapshot()))

    assert found["kapelle_cycle_seconds_total", ""] == pytest.approx(1.5)
    assert found["kapelle_commit_seconds_total", ""] == pytest.approx(0.2505)
    assert found["kapelle_commit_seconds_max", ""] == pytest.approx(0.03125)


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
    lines = exposition(Counters().snapshot(), STATISTICS).splitlines()
    helped = [line.split(" ")[2] for line in lines if line.startswith("# HELP ")]
    typed = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]

    assert helped == typed
    assert len(set(helped)) == len(helped)
    assert set(helped) == {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}
