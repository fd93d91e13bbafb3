"""Starting: with the broker away, at a wrong address, in a directory that is taken, under a name that is taken."""

import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kapelle.topology.errors import BadSetting, BadTopology, CycleAborted, InstanceFencedAgain
from kapelle.topology.kafka import run, transactions
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.run import KafkaMember, instance_of
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.tables import StoreLocked
from tests.integration.runtime.members import Deployment, Running, own, until
from tests.proof.processors import counting
from tests.proof.workload import ticks
from tests.support.broker import Broker
from tests.support.proxy import Proxy

NOWHERE = "127.0.0.1:1"


def test_a_broker_that_comes_later_is_waited_for(own_broker: Broker, proxy: Proxy, tmp_path: Path) -> None:
    place = Deployment(own_broker, tmp_path, own([counting]))
    place.publish(ticks(10, 3))
    proxy.refuse()
    later = threading.Timer(1.5, proxy.accept)
    later.start()
    settings = KafkaSettings(bootstrap_servers=own_broker.proxied_servers)

    with Running(KafkaMember(place.topology, settings, tmp_path / "one")) as one:
        until(lambda: one.counters.events >= 10, "the records to be folded")

    later.join()


def test_a_broker_that_goes_before_the_member_has_joined_is_waited_for(
    own_broker: Broker, proxy: Proxy, tmp_path: Path
) -> None:
    place = Deployment(own_broker, tmp_path, own([counting]))
    place.publish(ticks(10, 3))
    settings = KafkaSettings(bootstrap_servers=own_broker.proxied_servers, call_timeout_s=1.5)
    member = KafkaMember(place.topology, settings, tmp_path / "one")
    proxy.refuse()

    with Running(member) as one:
        until(lambda: one.ended() or one.counters.aborts + one.counters.renewals > 0, "the member to miss the broker")
        proxy.accept()
        until(lambda: one.ended() or one.counters.events >= 10, "the records to be folded")


def events_of(place: Deployment) -> int:
    """How many events of the counting processor are committed."""
    return sum(map(len, place.seen()["counting.events"].values()))


def test_a_broker_that_comes_and_goes_while_tables_are_taken_in_is_waited_for_and_not_taken_for_lost_data(
    own_broker: Broker, proxy: Proxy, tmp_path: Path
) -> None:
    place = Deployment(own_broker, tmp_path, own([counting]))
    settings = KafkaSettings(bootstrap_servers=own_broker.proxied_servers, call_timeout_s=0.5)
    place.publish(ticks(10, 3))
    with Running(KafkaMember(place.topology, settings, tmp_path / "one")) as one:
        until(lambda: one.counters.events >= 10, "the records to be folded")
    place.publish(row for n, row in enumerate(ticks(20, 3)) if n >= 10)
    member = KafkaMember(place.topology, settings, tmp_path / "one")

    def come_and_go() -> None:
        for _ in range(8):
            proxy.refuse()
            time.sleep(0.2)
            proxy.accept()
            time.sleep(0.1)

    flapping = threading.Thread(target=come_and_go)
    flapping.start()
    with Running(member) as again:
        flapping.join()
        # Counters count what was given up too: only the topic tells what was committed.
        until(lambda: again.ended() or events_of(place) >= 20, "the records to be folded")

    assert (again.error, again.counters.wipes) == (None, 0)
    assert events_of(place) == 20


def test_a_wrong_address_is_told_in_bounded_time(tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=NOWHERE, request_timeout_s=1.0)
    began = time.monotonic()

    with pytest.raises(CycleAborted, match=f"list topics at {NOWHERE}: _TRANSPORT"):
        KafkaMember(own([counting]), settings, tmp_path)

    assert time.monotonic() - began < 3.0
    assert not (tmp_path / "tables").exists()


def test_settings_that_librdkafka_does_not_know_are_refused() -> None:
    settings = KafkaSettings(bootstrap_servers=NOWHERE, extra={"no.such.setting": 1})

    with pytest.raises(BadSetting, match=r'rejected the settings: No such configuration property: "no.such.setting"'):
        Topics(own([counting]), settings)


def test_a_processor_that_is_not_in_the_topology_is_refused(broker: Broker, tmp_path: Path) -> None:
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)

    with pytest.raises(BadTopology, match="Expected processors among counting, found joining"):
        KafkaMember(own([counting]), settings, tmp_path, hosted=["joining"])


def test_a_directory_that_is_taken_is_refused_with_its_holder(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "HANDOVER_S", 0.1)
    place = Deployment(broker, tmp_path, own([counting]))

    with place.member() as one:
        with pytest.raises(StoreLocked, match=r"in use by process \d+ on .*: one process at a time"):
            place.member()
        until(lambda: one.member.ready, "the first one to go on")

    with place.member() as again:
        until(lambda: again.member.ready, "the directory to be free again")


def test_two_processes_of_one_name_do_not_fence_each_other_for_ever(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory was copied, with the name in it. One of the two gives up and says why; the other goes on."""
    monkeypatch.setattr(transactions, "FENCES_MAX", 2)
    place = Deployment(broker, tmp_path, own([counting]))
    instance = instance_of(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    rows = list(ticks(20_000, 20))
    published = 0
    members = [place.member("one"), place.member("two")]

    def one_gave_up() -> bool:
        nonlocal published
        place.publish(rows[published : published + 20])
        published += 20
        return any(member.ended() for member in members)

    def all_folded() -> bool:
        return sum(map(len, place.seen()["counting.events"].values())) == published

    with suppress(InstanceFencedAgain), members[0], members[1]:
        until(one_gave_up, "one of the two to give up")
        until(all_folded, "the other to fold the rest")

    told = [str(member.error) for member in members if member.error is not None]
    assert len(told) == 1
    assert f"only process of instance '{place.topology.prefix}.{instance}'" in told[0]
