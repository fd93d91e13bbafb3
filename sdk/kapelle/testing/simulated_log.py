"""The simulated cluster as one member sees it: the `Log` that the simulation hands to a real `Member`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.testing.cluster import Cluster, Entry, Outcome, Transaction
from kapelle.topology.build import Topology
from kapelle.topology.errors import CycleAborted, ProducerLost, Unanswered
from kapelle.topology.inputs import Known, judged
from kapelle.topology.log import Listener, Loss, Out, Place, Record, Row, Run, Taken

Choose = Callable[[int], int]  # a number below the given one


def _all(count: int) -> int:
    return count - 1


class Faults:
    """What the next calls of a log do wrong. Each fault is used once."""

    def __init__(self) -> None:
        self.commit_unanswered: Outcome | None = None  # the commit has this outcome, and nobody tells
        self.commit_aborted = False
        self.repeat_records = 0  # records delivered once more
        self.unanswered = 0  # questions about offsets that no broker answers

    def answer(self, asked: str) -> None:
        """Answer a question about offsets, or not."""
        if self.unanswered:
            self.unanswered -= 1
            raise Unanswered(asked, "where it begins or ends", "-1001")


class SimulatedLog:
    """One process's connection to the cluster."""

    def __init__(self, cluster: Cluster, topology: Topology, name: str, *, choose: Choose = _all) -> None:
        self.cluster = cluster
        self.name = name
        self.faults = Faults()
        self._topology = topology
        self._choose = choose
        self._listener: Listener | None = None
        self._epochs: dict[str, int] = {}
        self._owned: dict[str, set[int]] = {p: set() for p in topology.processors}
        self._positions: dict[tuple[str, Place], int] = {}
        self._ids: dict[tuple[str, Place], str] = {}  # of the topics that are read
        self._told: dict[tuple[str, Place], int] = {}  # the ends that were told
        self._watched: dict[Place, int] = {}
        self._row_ends: dict[Place, int] = {}
        self._transaction: Transaction | None = None
        self._producer_epoch = 0
        self._moves = -1  # those of the cluster that have been looked at

    def join(self, listener: Listener) -> None:
        self._listener = listener
        self.renew()
        for processor in self._topology.processors:
            self._epochs[processor] = self.cluster.join_group(processor, self.name)

    def take(self, records_max: int, wait_s: float) -> Taken:  # noqa: ARG002 - time stands still here
        self._rebalance()
        taken = Taken([], [])
        told, end = self._told, self.cluster.end
        for at, start in list(self._positions.items()):
            processor, place = at
            if self.cluster.firsts or self.cluster.lives:
                self._check_position(at, start)
            if start == told.get(at) == end(place) and not self.faults.repeat_records:
                continue  # nothing has come since the end was told
            position = start
            stable = self.cluster.stable_end(place)
            there = self.cluster.committed_entries(place, position)
            wanted = there[: self._choose(min(len(there), records_max) + 1)] if there else []
            whole = len(wanted) == len(there)
            again = self._again(place, position)
            records = [Record(offset, e.key, e.value, e.headers) for offset, e in again + wanted]
            if records:
                taken.runs.append(Run(processor, place, records))
                position = max(position, records[-1].offset + 1)
            if whole:
                position = max(position, stable)
                taken.ends.append((processor, place, position))
                told[at] = position
            self._positions[at] = position
        return taken

    def _again(self, place: Place, position: int) -> list[tuple[int, Entry]]:
        """Records that were delivered before, if the fault says so."""
        count, self.faults.repeat_records = self.faults.repeat_records, 0
        return [e for e in self.cluster.committed_entries(place) if position - count <= e[0] < position]

    def start(self, processor: str, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            self._positions[processor, place] = offset
            self._told.pop((processor, place), None)

    def _check_position(self, at: tuple[str, Place], position: int) -> None:
        """A position that is not there is told, and the id of another topic is noticed sooner or later."""
        processor, place = at
        is_other = self._ids.get(at, "") != self.cluster.topic_id(place.topic) and self._choose(4)
        if is_other or not self.cluster.firsts.get(place, 0) <= position <= self.cluster.end(place):
            del self._positions[at]
            raise CycleAborted(f"{processor} can't read {place} on from {position}")

    def losses(self, processor: str, places: Sequence[Place]) -> list[Loss]:
        self.faults.answer(processor)
        cluster, group = self.cluster, self.cluster.groups[processor]
        self._ids |= {(processor, place): cluster.topic_id(place.topic) for place in places}
        losses = [
            judged(
                place,
                group.offsets.get(place),
                group.ids.get(place, ""),
                Known(cluster.firsts.get(place, 0), cluster.end(place), cluster.topic_id(place.topic)),
            )
            for place in places
        ]
        return [loss for loss in losses if loss is not None]

    def uncommitted(self, processor: str, places: Sequence[Place]) -> list[Place]:
        offsets = self.cluster.groups[processor].offsets
        return [place for place in places if place not in offsets]

    def committed(self, processor: str, places: Sequence[Place]) -> dict[Place, int]:
        self.faults.answer(processor)
        try:
            return self.cluster.stable_offsets(processor, places)
        except CycleAborted:
            if self._choose(2):
                self.free(processor, places)
            raise

    def free(self, processor: str, places: Sequence[Place]) -> None:
        senders = self.cluster.groups[processor].senders
        for owner in {senders[p] for p in places if p in senders} - {self.name}:
            self.cluster.init_producer(owner)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        if places:
            self.faults.answer(str(places[0]))
        return {place: self.cluster.end(place) for place in places}

    def identity(self, topic: str) -> str:
        return topic

    def schemas(self) -> list[SchemaRecord]:
        return []

    def watch(self, changelogs: Mapping[Place, int]) -> None:
        self._watched = dict(changelogs)

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:  # noqa: ARG002
        found: dict[Place, list[Row]] = {}
        reached: dict[Place, int] = {}
        for place, offset in self._watched.items():
            there = self.cluster.committed_entries(place, offset)
            wanted = there[: self._choose(min(len(there), rows_max) + 1)] if there else []
            found[place] = [Row(i, e.key or b"", e.value) for i, e in wanted]
            whole = len(wanted) == len(there)
            reached[place] = self.cluster.stable_end(place) if whole else wanted[-1][0] + 1 if wanted else offset
            self._watched[place] = max(offset, reached[place])
        return found, reached

    # The transaction ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self._transaction is not None:
            raise AssertionError("a transaction is open already")
        self._row_ends = {}
        self._transaction = self.cluster.begin(self.name, self._producer_epoch)
        self.cluster.check_producer(self._transaction)

    def send(self, outs: Sequence[Out]) -> None:
        transaction = self._open()
        for place, key, value, headers in outs:
            self.cluster.append(transaction, place, Entry(transaction, key, value, headers))

    def send_rows(self, place: Place, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        transaction = self._open()
        for key, value in rows:
            offset = self.cluster.append(transaction, place, Entry(transaction, key, value, None))
            self._row_ends[place] = offset + 1

    def send_offsets(self, processor: str, offsets: Mapping[Place, int]) -> None:
        transaction = self._open()
        self.cluster.check_producer(transaction)
        self.cluster.check_member(processor, self.name, self._epochs[processor])
        transaction.offsets.setdefault(processor, {}).update(offsets)
        transaction.ids.setdefault(processor, {}).update({p: self._ids.get((processor, p), "") for p in offsets})

    def commit(self) -> None:
        transaction = self._open()
        self.cluster.check_producer(transaction)
        faults = self.faults
        if faults.commit_aborted:
            faults.commit_aborted = False
            raise CycleAborted("the commit was refused")
        if faults.commit_unanswered is not None:
            outcome, faults.commit_unanswered = faults.commit_unanswered, None
            if outcome is not Outcome.OPEN:
                self.cluster.finish(transaction, outcome)
            raise ProducerLost("the commit was not answered")
        self.cluster.finish(transaction, Outcome.COMMITTED)
        self._transaction = None

    def row_end(self, place: Place) -> int:
        return self._row_ends[place]

    def abort(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        self.cluster.check_producer(transaction)
        self.cluster.finish(transaction, Outcome.ABORTED)

    def renew(self) -> None:
        self._transaction = None
        self._producer_epoch = self.cluster.init_producer(self.name)

    def leave(self) -> None:
        with suppress(ProducerLost):  # somebody else has ended it
            self.abort()
        self.cluster.expel(self.name)
        self._positions.clear()

    def forget_listener(self) -> None:
        """The member is gone, whether it has left or not."""
        self._listener = None

    def _open(self) -> Transaction:
        if self._transaction is None:
            raise AssertionError("no transaction is open")
        return self._transaction

    # Partitions -----------------------------------------------------------------------------------------------------

    def _rebalance(self) -> None:
        if self._moves == self.cluster.moves:
            return
        self._moves = self.cluster.moves
        listener = self._joined()
        for processor, owned in self._owned.items():
            group = self.cluster.groups[processor]
            expelled = group.members.get(self.name) != self._epochs[processor]
            gone = {p for p in owned if expelled or group.wanted.get(p) != self.name}
            if gone:
                self._give_up(processor, gone)
            if expelled:
                self._epochs[processor] = self.cluster.join_group(processor, self.name)
            new = {p for p, m in group.wanted.items() if m == self.name and p not in group.owner}
            if new:
                owned.update(new)
                self.cluster.own(processor, new, self.name)
                listener.assigned(processor, sorted(new))

    def _give_up(self, processor: str, partitions: set[int]) -> None:
        group = self.cluster.groups[processor]
        self._owned[processor] -= partitions
        self._joined().revoked(processor, sorted(partitions))
        if group.members.get(self.name) == self._epochs[processor]:
            self.cluster.disown(processor, partitions, self.name)
        self._positions = {
            (name, place): offset
            for (name, place), offset in self._positions.items()
            if name != processor or place.partition not in partitions
        }

    def _joined(self) -> Listener:
        if self._listener is None:
            raise AssertionError("nobody has joined")
        return self._listener
