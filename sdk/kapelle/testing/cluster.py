"""A simulated Kafka: partitions, transactions and consumer groups, as far as the exactly-once protocol depends on them.

It models what the protocol rests on, and nothing else:

- a partition is a list of entries; a transaction's entries are visible once its marker stands behind them, and nothing
  behind the first entry of an open transaction is visible (the last stable offset);
- a producer has an epoch; a newer producer of the same name fences it and aborts its open transaction;
- a group has members; a partition goes to its next owner only after the present one gave it up or was expelled, and
  offsets sent by an expelled member are refused, also within a transaction;
- committed offsets under an open transaction cannot be read until it ends.

There is no clock and no chance here: the caller (see schedule.py) decides what happens next.
"""

from collections.abc import Iterable
from enum import StrEnum

from kapelle.topology.errors import CycleAborted, ProducerLost
from kapelle.topology.log import Headers, Place


class Outcome(StrEnum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transaction:
    """What one producer did since it began."""

    def __init__(self, producer: str, epoch: int) -> None:
        self.producer = producer
        self.epoch = epoch
        self.outcome = Outcome.OPEN
        self.places: set[Place] = set()
        self.offsets: dict[str, dict[Place, int]] = {}
        self.ids: dict[str, dict[Place, str]] = {}  # of the topics that the offsets are of


class Entry:
    """One slot of a partition: a record, or the marker that ends a transaction there."""

    __slots__ = ("headers", "key", "transaction", "value", "visible")

    def __init__(
        self, transaction: Transaction | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> None:
        self.transaction = transaction
        self.key = key
        self.value = value
        self.headers = headers
        self.visible = transaction is None


class Group:
    """A consumer group of one processor."""

    def __init__(self) -> None:
        self.members: dict[str, int] = {}  # member → the epoch at which it joined
        self.epoch = 0
        self.wanted: dict[int, str] = {}  # partition → who should own it
        self.owner: dict[int, str] = {}  # partition → who does
        self.offsets: dict[Place, int] = {}
        self.senders: dict[Place, str] = {}  # who committed them
        self.ids: dict[Place, str] = {}  # the topic's id when they were committed


class Cluster:
    """All brokers at once."""

    def __init__(self) -> None:
        self.partitions: dict[Place, list[Entry]] = {}
        self.groups: dict[str, Group] = {}
        self.epochs: dict[str, int] = {}
        self.open: list[Transaction] = []
        self.firsts: dict[Place, int] = {}  # where partitions begin of which records were deleted
        self.lives: dict[str, int] = {}  # how often topics were deleted and created again
        self.moves = 0  # how often members or their partitions have changed

    # Records --------------------------------------------------------------------------------------------------------

    def publish(self, place: Place, key: bytes | None, value: bytes | None) -> None:
        """A record from outside any transaction."""
        self.partitions.setdefault(place, []).append(Entry(None, key, value, None))

    def end(self, place: Place) -> int:
        return len(self.partitions.get(place, ()))

    def stable_end(self, place: Place) -> int:
        """Where a `read_committed` reader must stop."""
        if self.open and any(place in t.places for t in self.open):
            for offset, entry in enumerate(self.partitions[place]):
                if entry.transaction is not None and entry.transaction.outcome is Outcome.OPEN:
                    return offset
        return self.end(place)

    def committed_entries(self, place: Place, offset: int = 0) -> list[tuple[int, Entry]]:
        """What a `read_committed` reader sees from an offset on."""
        stable = self.stable_end(place)
        entries = self.partitions.get(place, [])
        first = max(offset, self.firsts.get(place, 0)) if self.firsts else offset
        return [(i, entries[i]) for i in range(first, stable) if entries[i].visible]

    def topic_id(self, topic: str) -> str:
        return f"{topic}/{self.lives.get(topic, 0)}"

    # Transactions ---------------------------------------------------------------------------------------------------

    def init_producer(self, name: str) -> int:
        """A new epoch for the name. Its open transaction, if any, is aborted."""
        for transaction in [t for t in self.open if t.producer == name]:
            self.finish(transaction, Outcome.ABORTED)
        self.epochs[name] = self.epochs.get(name, -1) + 1
        return self.epochs[name]

    def begin(self, name: str, epoch: int) -> Transaction:
        transaction = Transaction(name, epoch)
        self.open.append(transaction)
        return transaction

    def append(self, transaction: Transaction, place: Place, entry: Entry) -> int:
        self.check_producer(transaction)
        transaction.places.add(place)
        entries = self.partitions.setdefault(place, [])
        entries.append(entry)
        return len(entries) - 1

    def check_producer(self, transaction: Transaction) -> None:
        if self.epochs[transaction.producer] != transaction.epoch or transaction.outcome is not Outcome.OPEN:
            raise ProducerLost(f"producer {transaction.producer} was fenced")

    def finish(self, transaction: Transaction, outcome: Outcome) -> None:
        """Write the markers; on commit, make the records visible and the offsets count."""
        transaction.outcome = outcome
        self.open.remove(transaction)
        for place in sorted(transaction.places):
            entries = self.partitions[place]
            if outcome is Outcome.COMMITTED:
                for entry in entries:
                    if entry.transaction is transaction:
                        entry.visible = True
            marker = Entry(transaction, None, None, None)
            marker.visible = False
            entries.append(marker)
        if outcome is Outcome.COMMITTED:
            for processor, offsets in transaction.offsets.items():
                self.groups[processor].offsets.update(offsets)
                self.groups[processor].ids.update(transaction.ids.get(processor, {}))
                self.groups[processor].senders.update(dict.fromkeys(offsets, transaction.producer))

    # Groups ---------------------------------------------------------------------------------------------------------

    def join_group(self, processor: str, member: str) -> int:
        group = self.groups.setdefault(processor, Group())
        group.epoch += 1
        group.members[member] = group.epoch
        self.moves += 1
        return group.epoch

    def expel(self, member: str) -> None:
        """The member's session is over: its partitions are free, and its offsets are refused from now on."""
        self.moves += 1
        for group in self.groups.values():
            if group.members.pop(member, None) is not None:
                group.epoch += 1
                group.owner = {p: m for p, m in group.owner.items() if m != member}

    def share(self, processor: str, partitions: Iterable[int], members: list[str]) -> None:
        """Say who should own what. Owners that must give a partition up are told when they next look."""
        self.moves += 1
        group = self.groups[processor]
        group.wanted = {p: members[i % len(members)] for i, p in enumerate(partitions)} if members else {}

    def own(self, processor: str, partitions: Iterable[int], member: str) -> None:
        """The member has taken these partitions."""
        self.moves += 1
        self.groups[processor].owner.update(dict.fromkeys(partitions, member))

    def disown(self, processor: str, partitions: Iterable[int], member: str) -> None:
        """The member has given these partitions up."""
        self.moves += 1
        owner = self.groups[processor].owner
        for partition in partitions:
            if owner.get(partition) == member:
                del owner[partition]

    def check_member(self, processor: str, member: str, epoch: int) -> None:
        if self.groups[processor].members.get(member) != epoch:
            raise CycleAborted(f"{member} is no longer a member of group {processor}")

    def stable_offsets(self, processor: str, places: Iterable[Place]) -> dict[Place, int]:
        """The committed offsets, unless an open transaction may still change them."""
        wanted = list(places)
        for transaction in self.open:
            if any(place in transaction.offsets.get(processor, {}) for place in wanted):
                raise CycleAborted(f"offsets of {processor} are not stable: {transaction.producer} has not finished")
        found, firsts = self.groups[processor].offsets, self.firsts
        return {place: found.get(place, firsts.get(place, 0)) for place in wanted}
