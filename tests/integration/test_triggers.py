"""Triggers on a real broker while shards move between members, and what no signal can be made of beside good ones."""

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kapelle.processors.wiring import SIGNALS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.topology.journal import KafkaJournal
from kapelle.topology.page import topology
from tests.integration.runtime.members import Deployment, Running, until
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(280)

PARTITIONS = 3
PATIENT_S = 90.0
FLOW = "flow"


class Signals:
    """A deployment with one workflow, the signals that it is told of, and its starts."""

    def __init__(self, place: Deployment, journal: KafkaJournal) -> None:
        self.place = place
        self.starts: list[dict[str, int]] = []
        self._journal = journal
        self._follower = journal.follow([WORKFLOW_EVENTS], {})
        self._pushed = False

    def push(self, *definitions: dict[str, Any]) -> None:
        steps = [{"step": {"id": "only", "type": "NoOp"}}]
        triggers = [{"definitions": one} for one in definitions]
        body = {
            "properties": {"owner": "ann", "run_strategy": "PARALLEL"},
            "workflow": {"id": FLOW, "signal_triggers": triggers, "steps": steps},
        }
        self._journal.publish(WORKFLOW_COMMANDS, FLOW, c.PushVersion("push", "ann", json.dumps(body))).result()
        self.until(lambda: self._pushed, "the workflow to be there")

    def say(self, name: str, signal_id: str, **params: int) -> None:
        self._journal.publish(SIGNALS, name, c.AnnounceSignal(name, signal_id, json.dumps(params))).result()

    def look(self) -> None:
        for entry in self._follower.take(1_000, 0.05):
            self._pushed |= isinstance(entry.value, c.TriggersArmed)
            if isinstance(entry.value, c.InstanceCreated):
                self.starts.append(json.loads(entry.value.initiator)["signal_id_map"])

    def until(self, condition: Any, what: str) -> None:
        def looked() -> bool:
            self.look()
            return bool(condition())

        until(looked, what, PATIENT_S)

    def close(self) -> None:
        self._follower.close()


@pytest.fixture
def signals(broker: Broker, tmp_path: Path) -> Iterator[Signals]:
    shape = topology(prefix=f"triggers-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    place = Deployment(broker, tmp_path, shape)
    patient = msgspec.structs.replace(place.settings, call_timeout_s=PATIENT_S, request_timeout_s=PATIENT_S)
    with closing(KafkaJournal(shape, patient)) as journal, closing(Signals(place, journal)) as made:
        yield made


def owned(member: Running) -> set[Any]:
    return set(member.member.shards) if member.member.ready else set()


def test_a_join_goes_with_its_shard_from_member_to_member_and_back(signals: Signals) -> None:
    place = signals.place
    all_shards = sum(place.topology.processor_partitions(name) for name in place.topology.processors)
    days = range(6)
    with place.member("one") as one:
        signals.push({"a": {"join_keys": ["day"]}, "b": {"join_keys": ["day"]}})
        for day in days:
            signals.say("a", f"a{day}", day=day)
        signals.say("b", "b0", day=0)
        signals.until(lambda: len(signals.starts) == 1, "the first start")
        with place.member("two") as two:
            until(lambda: bool(owned(two)) and len(owned(one) | owned(two)) == all_shards, "shared shards", PATIENT_S)
            for day in (0, 1, 2):  # b0 again, to be taken for what it is
                signals.say("b", f"b{day}", day=day)
            signals.until(lambda: len(signals.starts) == 3, "the starts of two members")
        until(lambda: len(owned(one)) == all_shards, "all shards with one member again", PATIENT_S)
        for day in days:
            signals.say("b", f"b{day}", day=day)
            signals.say("b", f"more-{day}", day=day)  # whoever still has a used `a` would start something by it
            signals.say("a", f"a{day}", day=day)
        signals.until(lambda: len(signals.starts) >= 6, "all starts")
        signals.say("a", "last", day=5)
        signals.until(lambda: len(signals.starts) >= 7, "the start after all others")

    assert sorted(one["a"] for one in signals.starts) == [1, 2, 3, 4, 5, 6, 7]
    assert len({one["b"] for one in signals.starts}) == 7


def test_what_is_too_large_or_no_signal_is_put_aside_and_the_next_signal_starts(signals: Signals) -> None:
    place, name = signals.place, SIGNALS.name
    large = json.dumps({"name": "a", "payload": {"x": "x" * 300_000}}).encode()
    late = json.dumps({"name": "a", "time": "yesterday"}).encode()
    good = json.dumps({"name": "a", "id": "a1"}).encode()
    with place.member("one"):
        signals.push({"a": {}})
        place.publish_bytes(name, [(b"k", one, None) for one in (b"no signal", large, late, None, good)])
        signals.until(lambda: signals.starts == [{"a": 1}], "the start")
        until(lambda: len(place.letters()) == 4, "the letters", PATIENT_S)

    letters = place.letters()
    assert [(one.processor, one.partition, one.offset) for one in letters] == [("intake", 0, n) for n in range(4)]
    assert {one.topic for one in letters} == {place.topology.topic(SIGNALS)}
    assert [one.value for one in letters] == [b"no signal", large, late, None]
    wanted = ["Expected Avro, JSON or a CloudEvent", "262,144", "Expected a time", "has no value"]
    assert [told for told, one in zip(wanted, letters, strict=True) if told not in one.reason] == []
