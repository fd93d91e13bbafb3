"""Public events reach webhooks on a real broker: signed, in order, at least once, whatever the receivers do."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kapelle.schemas.contracts import InstanceStatus
from tests.integration.sinks.world import TOPIC, Answer, Got, Receiver, World, is_signed, served, webhook
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(290)


@pytest.fixture
def world(broker: Broker, tmp_path: Path) -> World:
    return World(broker, tmp_path)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def numbers(got: list[Got]) -> dict[str, list[int]]:
    """The numbers of changes by workflow, in the order that they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for one in got:
        data = one.document["data"]
        found[data["workflow_id"]].append(data["sequence"])
    return found


def test_events_are_delivered_as_signed_cloud_events_and_counted(world: World, receiver: Receiver) -> None:
    world.sinks(
        whole=webhook(receiver),
        bare={**webhook(receiver, mode="binary"), "filter": {"/status": "FAILED", "/workflow_id": ["wf0", "wf1"]}},
    )
    ids = world.write(10)
    failed = world.write(3, status=InstanceStatus.FAILED)

    with world.run("--metrics-port", "0") as running:
        world.until(lambda: len(receiver.taken) >= 15, "fifteen requests")
        world.until(lambda: served(running).get("delivered/bare") == 2, "the deliveries to be counted")
        counted = served(running)
        code = running.terminate()

    assert code == 0, running.said()
    assert all(is_signed(got) for got in receiver.got)
    assert not any(is_signed(got, "another-secret-than-ours") for got in receiver.got)
    kinds = {got.headers["content-type"]: got for got in receiver.taken}
    whole = [got for got in receiver.taken if got.headers["content-type"] == "application/cloudevents+json"]
    assert sorted(got.document["id"] for got in whole) == sorted(ids + failed)
    assert all(got.document["id"] == got.id for got in whole)
    event = kinds["application/cloudevents+json"].document
    assert event["specversion"] == "1.0"
    assert event["type"] == "InstanceStatusChange"
    assert event["source"] == f"/{world.prefix}/publisher.instances"
    assert event["data"]["workflow_id"] == event["subject"] == event["partitionkey"]
    bare = kinds["application/json"]
    assert bare.headers["ce-id"] == bare.id
    assert bare.document["status"] == "FAILED"
    assert counted["read/bare"] == 13
    assert counted["filtered/bare"] == 11
    assert counted["delivered/whole"] == 13
    assert counted["set_aside/whole"] == 0


def test_a_receiver_that_fails_is_tried_again_and_keeps_the_order_of_each_key(world: World) -> None:
    draw, asked = random.Random(8), dict[str, int]()

    def moody(got: Got) -> Answer:
        asked[got.id] = asked.get(got.id, 0) + 1
        return (204, {}) if asked[got.id] > 2 or draw.random() < 0.7 else (draw.choice([429, 500, 503]), {})

    with Receiver(moody) as receiver:
        world.sinks(moody=webhook(receiver))
        ids = world.write(300)
        with world.run() as running:
            world.until(lambda: len(receiver.taken) >= 300, "all events")
            assert running.terminate() == 0, running.said()

    assert len(receiver.got) > 350
    assert sorted(receiver.ids()) == sorted(ids)
    assert numbers(receiver.taken) == {f"wf{number}": list(range(1, 61)) for number in range(5)}
    assert world.place.letters() == []


def test_retry_after_is_waited_for(world: World) -> None:
    asked: list[Got] = []

    def busy(got: Got) -> Answer:
        asked.append(got)
        return (503, {"Retry-After": "2"}) if len(asked) == 1 else (200, {})

    with Receiver(busy) as receiver:
        world.sinks(busy=webhook(receiver))
        world.write(1)
        with world.run():
            world.until(lambda: receiver.taken, "the event")

    assert asked[1].at_s - asked[0].at_s >= 1.9


def test_what_a_receiver_refuses_becomes_a_dead_letter_and_the_rest_goes_on(world: World) -> None:
    def picky(got: Got) -> Answer:
        answers = {1: 400, 2: 500, 3: 307}
        return answers.get(got.document["data"]["sequence"], 200), {"Location": "http://127.0.0.1:1/"}

    with Receiver(picky) as receiver:
        world.sinks(picky=webhook(receiver))
        world.raw("wf9", b"no record of ours", [("ce_id", b"x")])
        ids = world.write(4, workflows=1)
        with world.run("--metrics-port", "0") as running:
            world.until(lambda: served(running).get("set_aside/picky") == 4, "four letters")
            world.until(lambda: len(receiver.taken) == 1, "the event that is taken")
            assert running.terminate() == 0, running.said()

    letters = world.place.letters()
    assert {letter.processor for letter in letters} == {"sinks.picky"}
    assert {letter.topic for letter in letters} == {world.topic}
    told = {{h.name: h.value for h in letter.headers}["ce_id"].decode(): letter.reason for letter in letters}
    assert told[ids[0]] == "Expected an answer of 2xx, but found 400"
    assert told[ids[1]].startswith("Expected an answer of 2xx, but found 500 (3 attempts in ")
    assert told[ids[2]] == "Expected an answer of 2xx, but found 307"
    assert "x" in told
    assert receiver.ids() == [ids[3]]
    offered = [got.id for got in receiver.got]
    assert [offered.count(one) for one in ids] == [1, 3, 1, 1]


def test_a_sink_that_hangs_holds_up_nobody_else_and_catches_up(world: World) -> None:
    with Receiver() as hanging, Receiver() as healthy:
        hanging.gate.clear()
        world.sinks(hanging=webhook(hanging, timeout_ms=120_000), healthy=webhook(healthy))
        ids = world.write(1_000)
        with world.run("--metrics-port", "0") as running:
            world.until(lambda: len(healthy.taken) == 1_000, "the healthy sink to have all")
            world.until(lambda: served(running).get("read/hanging", 0) >= 200, "the hanging sink to be full")
            held = served(running)

            hanging.gate.set()
            world.until(lambda: len(hanging.taken) >= 1_000, "the sink that hung to catch up")
            assert running.terminate() == 0, running.said()

    assert held["delivered/hanging"] == 0
    assert 200 <= held["read/hanging"] < 400
    assert sorted(hanging.ids()) == sorted(ids)
    assert numbers(hanging.taken) == {f"wf{number}": list(range(1, 201)) for number in range(5)}


def test_a_sink_that_is_away_is_waited_for_and_gets_all_that_happened_meanwhile(world: World) -> None:
    with Receiver(lambda _: (503, {})) as receiver:
        world.sinks(away=webhook(receiver))
        before = world.write(50)
        with world.run("--metrics-port", "0") as running:
            # Far more often than the attempts that an event has: being away is no fault of an event.
            world.until(lambda: served(running).get("failed/away", 0) >= 60, "the sink to be tried")
            meanwhile = world.write(50)

            receiver.answers = lambda _: (200, {})
            world.until(lambda: len(receiver.taken) >= 100, "the sink to catch up")
            assert running.terminate() == 0, running.said()

    assert sorted(receiver.ids()) == sorted(before + meanwhile)
    assert world.place.letters() == []


def test_sinks_that_are_killed_again_and_again_lose_nothing(world: World) -> None:
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    with Receiver() as receiver:
        world.sinks(killed={**webhook(receiver), "lanes": 4})
        world.write(1_500)
        for round_ in range(4):
            with world.run(name=f"killed-{round_}") as running:
                goal = len(receiver.taken) + draw.randrange(1, 400)
                world.until(lambda goal=goal: len(receiver.taken) >= goal, f"deliveries ({seed=})")  # type: ignore[misc]
                running.kill()
            world.write(500)
        with world.run(name="last"), world.run(name="beside"):
            world.until(lambda: len(set(receiver.ids())) >= 3_500, f"all events (seed {seed})")

    assert set(receiver.ids()) == set(world.ids)
    firsts: dict[str, list[int]] = {}
    for key, found in numbers(receiver.taken).items():
        firsts[key] = list(dict.fromkeys(found))  # repetitions are allowed, and known by their ids
    assert firsts == {f"wf{number}": list(range(1, 701)) for number in range(5)}
    assert world.place.letters() == []


def test_delivered_events_are_not_delivered_again_after_a_stop_in_good_order(world: World, receiver: Receiver) -> None:
    world.sinks(once=webhook(receiver))
    world.write(20)
    with world.run(name="first") as running:
        world.until(lambda: len(receiver.taken) == 20, "the first events")
        assert running.terminate() == 0, running.said()

    more = world.write(5)
    with world.run(name="second") as running:
        world.until(lambda: len(receiver.taken) >= 25, "the others")
        assert running.terminate() == 0, running.said()

    assert sorted(receiver.ids()[20:]) == sorted(more)


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ({"topics": ["kapelle.runs.events"]}, "Expected a public topic among public.workflows.changes"),
        ({}, "Expected either webhook or sns, but found neither"),
        ({"webhook": {"url": "http://h/"}}, "Expected a secret here or in KAPELLE_SINK_SECRETS, but found none"),
        ({"webhook": {"url": "ftp://h/", "secrets": ["s" * 16]}}, "Expected http://host/… or https://host/…"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(world: World, sink: dict[str, Any], said: str) -> None:
    world.file.write_text(json.dumps({"sinks": {"bad": {"topics": [TOPIC]} | sink}}))

    done = world.run()

    assert done.process.wait(120) == 2
    assert said in done.said()
    assert "s" * 16 not in done.said()
