"""Topics of others become signals on a real broker: once each, through kills, changes of the file and bad records."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.sources.world import Command, World, opened_world
from tests.support.broker import Broker
from tests.unit.sources.fake_registry import FakeRegistry, framed, schema_answer

pytestmark = pytest.mark.timeout(280)

PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "long"}],
}


@pytest.fixture
def world(broker: Broker, tmp_path: Path) -> Iterator[World]:
    with opened_world(broker, tmp_path) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sources.yaml"


def write(file: Path, *sources: dict[str, Any], **more: Any) -> None:
    """The file, replaced in one go, as careful people do."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps({"sources": sources, **more}))
    beside.replace(file)


def relay(world: World, file: Path, *more: str, name: str = "one") -> Command:
    words = ("sources", "run", "--file", str(file), "--session-timeout-ms", "2000")
    return world.command(*words, *more, name=name)


def served(running: Command) -> str:
    """The metrics that a relay serves."""
    found = re.search(r"url=(http://\S+/metrics)", running.said())
    return httpx.get(found[1], timeout=30).text if found else ""


def orders(first: int, count: int) -> list[bytes]:
    return [json.dumps({"id": f"o{number}", "day": "2026-11-16"}).encode() for number in range(first, first + count)]


def test_json_and_avro_become_signals_and_the_rest_dead_letters(world: World, file: Path) -> None:
    plain, avro = world.topic(), world.topic()
    with FakeRegistry({"/schemas/ids/7": schema_answer(PAYMENT)}) as registry:
        write(
            file,
            {"topic": plain, "name": "order", "params": {"order": "/id"}, "filter": {"/day": "2026-11-16"}},
            {"topic": avro, "format": "avro", "name": "paid", "params": {"amount": "amount"}, "id": "id"},
            registry=registry.url,
        )
        world.write(plain, *orders(0, 3), b'{"day": "1999-01-01"}', b"no json", b'{"day": "2026-11-16"}')
        world.write(avro, framed(7, PAYMENT, {"id": "p1", "amount": 5}), framed(8, PAYMENT, {"id": "p2", "amount": 6}))
        in_header = ("__value_schema_id", framed(7, "null", None))
        world.write(avro, framed(7, PAYMENT, {"id": "p3", "amount": 7})[5:], headers=[in_header])
        with relay(world, file, "--metrics-port", "0") as running:
            world.until(lambda: len(world.accepted) >= 5, "five signals")
            world.until(lambda: len(world.place.letters()) >= 3, "three letters")
            world.until(lambda: "kapelle_sources_announced_total 5\n" in served(running), "the signals to be counted")
            metrics = served(running)
            code = running.terminate()

    assert code == 0, running.said()
    assert sorted(json.loads(e.params)["order"] for e in world.accepted if e.name == "order") == ["o0", "o1", "o2"]
    assert sorted(world.ids("paid")) == ["p1", "p3"]
    letters = {(letter.processor, letter.topic, letter.value) for letter in world.place.letters()}
    assert letters == {
        ("sources", plain, b"no json"),
        ("sources", plain, b'{"day": "2026-11-16"}'),
        ("sources", avro, framed(8, PAYMENT, {"id": "p2", "amount": 6})),
    }
    counted = dict(re.findall(r"^kapelle_sources_(\w+)_total (\d+)$", metrics, re.MULTILINE))
    assert counted == {"read": "9", "announced": "5", "filtered": "1", "set_aside": "3", "waits": "0", "reloads": "0"}
    reasons = "\n".join(letter.reason for letter in world.place.letters())
    assert "Expected parameter 'order' at /id, but found nothing there" in reasons
    assert "none of the id 8" in reasons


def test_a_relay_that_is_killed_again_and_again_loses_and_doubles_nothing(world: World, file: Path) -> None:
    topic = world.topic()
    write(file, {"topic": topic, "name": "order", "params": {"order": "/id"}})

    world.write(topic, *orders(0, 4_000))
    for round_ in range(3):
        with relay(world, file, name=f"killed-{round_}") as running:
            seen = len(world.accepted)
            world.until(lambda seen=seen: len(world.accepted) > seen, "the relay to relay")  # type: ignore[misc]
            running.kill()
        world.write(topic, *orders(4_000 + 500 * round_, 500))
    with relay(world, file, name="last"), relay(world, file, name="beside"):
        world.until(lambda: len(set(world.ids("order"))) >= 5_500, "all signals")

    made = [json.loads(event.params)["order"] for event in world.accepted]
    assert sorted(made) == sorted(f"o{number}" for number in range(5_500))


def test_a_file_that_changes_is_read_anew_without_losing_records(world: World, file: Path) -> None:
    first, second = world.topic(), world.topic()
    write(file, {"topic": first, "name": "before", "params": {"order": "/id"}})
    world.write(first, *orders(0, 50))
    with relay(world, file) as running:
        world.until(lambda: len(world.ids("before")) == 50, "the first signals")

        file.with_suffix(".bad").write_text("sources: [{topic: 1}]")
        file.with_suffix(".bad").replace(file)
        running.process.send_signal(signal.SIGHUP)
        world.until(lambda: "the file cannot be used" in running.said(), "the bad file to be reported")
        write(
            file,
            {"topic": first, "name": "after", "params": {"order": "/id"}},
            {"topic": second, "name": "second", "params": {"order": "/id"}},
        )
        world.until(lambda: "the sources have changed" in running.said(), "the file to be read anew")
        world.write(first, *orders(50, 50))
        world.write(second, *orders(0, 50))
        world.until(lambda: len(world.ids("after")) + len(world.ids("second")) == 100, "the signals of the new file")
        assert running.terminate() == 0, running.said()

    assert len(world.accepted) == 150
    assert world.duplicated == []


def test_a_file_may_be_without_sources_for_a_while(world: World, file: Path) -> None:
    topic = world.topic()
    world.write(topic, *orders(0, 10))
    write(file)
    with relay(world, file) as running:
        world.until(lambda: "relaying" in running.said(), "the relay to start")

        write(file, {"topic": topic, "name": "order", "params": {"order": "/id"}})
        world.until(lambda: len(world.ids("order")) == 10, "the signals")
        write(file)
        world.until(lambda: running.said().count("the sources have changed") == 2, "the sources to be taken out")
        assert running.terminate() == 0, running.said()


def test_a_registry_that_is_away_is_waited_for(world: World, file: Path) -> None:
    topic = world.topic()
    with FakeRegistry({"/schemas/ids/7": schema_answer(PAYMENT)}) as registry:
        registry.status = 503
        write(file, {"topic": topic, "format": "avro", "name": "paid", "registry": registry.url, "id": "id"})
        world.write(topic, framed(7, PAYMENT, {"id": "p1", "amount": 5}))
        with relay(world, file) as running:
            world.until(lambda: "waiting" in running.said(), "the relay to wait")

            registry.status = 200
            world.until(lambda: world.ids("paid") == ["p1"], "the signal")

    assert world.place.letters() == []


def test_topics_that_sources_write_to_are_refused(world: World, file: Path) -> None:
    write(file, {"topic": f"{world.prefix}.signals", "name": "round-and-round"})

    done = relay(world, file)

    assert done.process.wait(60) == 2
    assert "Expected a topic that sources do not write to" in done.said()
