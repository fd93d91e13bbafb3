"""The topics of the topology: whether they exist with the right settings, and accept records."""

from collections.abc import Iterator
from typing import Final

from kapelle.cli.checks.broker import REPLICAS
from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.topology.kafka.topics import MENDABLE, Do, Topics

SHOWN_MAX: Final = 3
IN_SYNC: Final = "min.insync.replicas"


def planned(case: Case) -> Iterator[Finding]:
    """What `kapelle topics plan` would say, each difference by itself."""
    changes = Topics(case.topology, case.settings).plan()
    for change in changes:
        if change.do in MENDABLE:
            advice = case.target.command("topics", "apply")
        elif change.do is Do.MIGRATE:
            advice = f"Run with --partitions {change.found}, or start under another --prefix"
        else:
            advice = "Give it more with kafka-reassign-partitions"
        found = str(change).removeprefix(f"{change.topic}: ").partition(". ")[0]
        yield Finding(change.topic, Verdict.WRONG, found, advice)
    if not changes:
        yield Finding("topics", Verdict.OK, f"{len(case.there)} topics match the topology")


def led(case: Case) -> Iterator[Finding]:
    """Whether each partition has a leader, and all of its replicas."""
    leaderless, behind = [], []
    for name in case.there:
        for number, partition in case.metadata.topics[name].partitions.items():
            if partition.leader < 0:
                leaderless.append(f"{name}-{number}")
            elif len(partition.isrs) < len(partition.replicas):
                behind.append(f"{name}-{number}")
    if leaderless:
        found = f"{some(leaderless)} without a leader: they cannot be read or written"
        yield Finding("partitions", Verdict.WRONG, found, "Start the brokers that have their replicas")
    if behind:
        found = f"{some(behind)} with replicas that are offline or behind"
        yield Finding("partitions", Verdict.WARNING, found, "Check which brokers are down or slow")
    if case.there and not leaderless and not behind:
        yield Finding("partitions", Verdict.OK, "all have a leader and all replicas in sync")


def kept(case: Case) -> Iterator[Finding]:
    """How many replicas must have a record before it counts, against how many there are."""
    stuck, bold, few = [], [], []
    for name in case.there:
        replicas, in_sync = case.replicas(name), int(case.topic_configs[name].get(IN_SYNC) or 1)
        if in_sync > replicas:
            stuck.append(name)
        elif replicas < min(REPLICAS, len(case.brokers)):
            few.append(name)
        elif replicas >= REPLICAS and in_sync < REPLICAS - 1:
            bold.append(name)
    if stuck:
        found = f"{some(stuck)} with fewer replicas than {IN_SYNC}: no record can be written"
        yield Finding(
            IN_SYNC, Verdict.WRONG, found, "Lower it on the brokers or the topics, or give them more replicas"
        )
    if bold:
        found = f"{some(bold)} may acknowledge records that only one broker has"
        yield Finding(IN_SYNC, Verdict.WARNING, found, f"Set it to {REPLICAS - 1}, on the brokers or on the topics")
    if few:
        advice = f"Give them {REPLICAS} with kafka-reassign-partitions"
        yield Finding("replicas", Verdict.WARNING, f"{some(few)} with fewer than {REPLICAS} replicas", advice)
    if case.there and not (stuck or bold or few):
        yield Finding(IN_SYNC, Verdict.OK, "the maximum that the brokers allow")


def some(names: list[str]) -> str:
    """A few of the names, and how many there are."""
    shown = ", ".join(names[:SHOWN_MAX])
    return shown if len(names) <= SHOWN_MAX else f"{shown} and {len(names) - SHOWN_MAX} more"
