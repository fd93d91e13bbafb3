"""What the doctor makes of what it is told: releases by their requests, file systems by their mounts."""

from pathlib import Path

import pytest

from kapelle.cli.checks.broker import RULES, release_of
from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.cli.checks.clocks import _judged
from kapelle.cli.checks.disk import filesystem, write_speed_mb_s
from kapelle.cli.options.target import Target
from kapelle.topology.build import Topology
from kapelle.topology.kafka.config import KafkaSettings, Protocol

MOUNTS = """\
overlay / overlay rw,relatime 0 0
tmpfs /srv/memory tmpfs rw 0 0
store:/vol /srv/state nfs4 rw 0 0
/dev/sdb1 /srv/state/local ext4 rw 0 0
/dev/sdc1 /srv/with\\040blank xfs rw 0 0
"""


def case(**settings: object) -> Case:
    kafka = KafkaSettings(bootstrap_servers="unused", **settings)  # type: ignore[arg-type]
    return Case(target=Target(), topology=Topology([], prefix="k"), settings=kafka)


@pytest.mark.parametrize(
    ("apis", "release"),
    [
        ({1: (4, 18), 28: (0, 5), 60: (0, 2), 65: (0, 0), 68: (0, 1), 75: (0, 0), 80: (0, 1), 88: (0, 0)}, (4, 1)),
        ({1: (4, 17), 28: (0, 5), 60: (0, 2), 65: (0, 0), 68: (0, 1), 75: (0, 0), 80: (0, 0)}, (4, 0)),
        ({1: (0, 17), 28: (0, 4), 60: (0, 1), 65: (0, 0), 68: (0, 0), 75: (0, 0)}, (3, 8)),
        ({1: (0, 13), 28: (0, 3), 60: (0, 0), 65: (0, 0)}, (3, 0)),
        ({1: (0, 11), 28: (0, 3)}, (2, 5)),
        ({1: (0, 11), 28: (0, 2)}, (0, 0)),
    ],
)
def test_a_release_is_known_by_the_requests_that_it_takes(
    apis: dict[int, tuple[int, int]], release: tuple[int, int]
) -> None:
    assert release_of(apis) == release


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "overlay"),
        ("/srv/memory/state", "tmpfs"),
        ("/srv/state/tables", "nfs4"),
        ("/srv/state/local/tables", "ext4"),
        ("/srv/with blank/tables", "xfs"),
    ],
)
def test_a_file_system_is_that_of_the_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)

    assert filesystem(Path(path), mounts) == kind


def test_where_mounts_are_not_told_the_file_system_is_not_known(tmp_path: Path) -> None:
    assert filesystem(tmp_path, tmp_path / "nothing") == ""


def test_the_speed_of_a_directory_is_measured_and_nothing_is_left_there(tmp_path: Path) -> None:
    assert write_speed_mb_s(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ahead_ms", "verdict", "found"),
    [
        (1_500, Verdict.OK, "within 2 s of the local clock"),
        (-5_000, Verdict.WARNING, "5 s behind the local clock"),
        (90_000, Verdict.WRONG, "90 s ahead of the local clock"),
    ],
)
def test_a_clock_is_judged_by_how_far_it_is_off(ahead_ms: int, verdict: Verdict, found: str) -> None:
    told = _judged("a clock", ahead_ms)

    assert isinstance(told, Finding)
    assert (told.verdict, told.found) == (verdict, found)


def test_each_protocol_is_held_to_its_own_session_only() -> None:
    by_name = {rule.setting: rule for rule in RULES}
    classic, consumer = case(session_timeout_ms=6_000), case(protocol=Protocol.CONSUMER)

    assert not by_name["group.min.session.timeout.ms"].holds("10000", classic)
    assert by_name["group.min.session.timeout.ms"].holds("10000", consumer)
    assert by_name["group.consumer.session.timeout.ms"].holds("45000", classic)
    assert not by_name["group.consumer.session.timeout.ms"].holds("45000", consumer)
    assert by_name["group.coordinator.rebalance.protocols"].holds("classic,consumer", consumer)
    assert not by_name["group.coordinator.rebalance.protocols"].holds("classic", consumer)


def test_every_rule_says_what_to_do() -> None:
    assert [rule.setting for rule in RULES if not rule.advice or not rule.expected(case())] == []
