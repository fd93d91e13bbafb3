"""Stopping a process: in good order and in time, under load, when idle, and when the broker is away."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kapelle.topology.kafka.log import ABORT_S, LEAVE_S
from tests.integration.runtime.members import Deployment, Process, own, until
from tests.proof.processors import stages
from tests.proof.workload import Published, hops
from tests.support.broker import Broker
from tests.support.processes import client_threads
from tests.support.proxy import Proxy

STOP_S = 5.0
# The longest call of the loop ends first: a commit, which may take ten seconds by default.
COMMIT_S = 3
STOP_WITHOUT_BROKER_S = COMMIT_S + ABORT_S + LEAVE_S + 1.0


@contextmanager
def load(place: Deployment) -> Iterator[None]:
    """Records without end, while the block runs."""
    over = threading.Event()

    def endless() -> Iterator[Published]:
        for row in hops(10**6, 11):
            if over.is_set():
                return
            yield row
            over.wait(0.002)

    publisher = threading.Thread(target=place.publish, args=(endless(),))
    publisher.start()
    try:
        yield
    finally:
        over.set()
        publisher.join()


def is_folding(place: Deployment) -> bool:
    return any(place.seen()["stage-4.events"].values())


def test_a_process_stops_in_time_under_load_and_loses_nothing(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own(stages))
    with load(place), Process(place, "--topology", "stages") as process:
        until(lambda: is_folding(place), "the process to fold")

        process.terminate(STOP_S)

    with place.member():
        until(lambda: numbers(place, 4) == numbers(place, 1), "the rest to be folded")
    assert place.table_problems() == []


def numbers(place: Deployment, stage: int) -> dict[str, list[int]]:
    """The numbers that a stage has seen, by their source, in order."""
    found: dict[str, list[int]] = {}
    for rows in place.seen()[f"stage-{stage}.events"].values():
        for _, event in rows:
            found.setdefault(event.source, []).append(event.number)
    return found


def test_an_idle_process_stops_in_time(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own(stages))
    place.publish(hops(1, 1))
    with Process(place, "--topology", "stages") as process:
        until(lambda: is_folding(place), "the process to fold")

        process.terminate(STOP_S)


def test_a_member_that_has_left_leaves_no_client_behind_though_somebody_holds_it(
    broker: Broker, tmp_path: Path
) -> None:
    place = Deployment(broker, tmp_path, own(stages))
    before = client_threads()

    with place.member() as one:
        until(lambda: one.member.ready, "the member to be ready")

    until(lambda: client_threads() <= before, "its clients to end")
    assert one.member.shards == {}


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_a_process_stops_in_time_while_the_broker_is_away(
    how: str, own_broker: Broker, proxy: Proxy, tmp_path: Path
) -> None:
    place = Deployment(own_broker, tmp_path, own(stages))
    arguments = ("--topology", "stages", "--commit-timeout-s", f"{COMMIT_S}")
    with load(place), Process(place, *arguments, servers=own_broker.proxied_servers) as process:
        until(lambda: is_folding(place), "the process to fold")
        (proxy.refuse if how == "refused" else proxy.stall)()

        process.terminate(STOP_WITHOUT_BROKER_S)
        proxy.flow()
