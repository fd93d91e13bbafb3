"""A schedule in which input vanishes below its readers: records are deleted unread, topics are replaced.

After it has run, every record that was published must be accounted for: it was folded, or a dead letter says that it
was lost. A member that must stop for lost input stops with that error; the operator of the schedule then starts it
again with the setting to continue.
"""

from typing import NamedTuple

import msgspec

from kapelle.schemas import Codec
from kapelle.schemas.contracts import DeadLetter
from kapelle.testing.cluster import Cluster, Entry
from kapelle.testing.schedule import TURNS, Process, Schedule
from kapelle.topology.build import Topology
from kapelle.topology.errors import InputLost
from kapelle.topology.log import Cause, Place
from kapelle.topology.settings import MemberSettings, OnLostInput

DOUBT_MS = 10


def delete_below(cluster: Cluster, place: Place, offset: int) -> None:
    """Delete the records before an offset, whether they were read or not."""
    cluster.firsts[place] = max(cluster.firsts.get(place, 0), min(offset, cluster.stable_end(place)))


class DeletedPartition(NamedTuple):
    """What a partition held before its topic was deleted, and from which offset on."""

    place: Place
    entries: list[Entry]


def replace_topic(cluster: Cluster, topic: str) -> list[DeletedPartition]:
    """Delete a topic and create it again, empty. Its committed offsets go with it, as on a broker."""
    cluster.lives[topic] = cluster.lives.get(topic, 0) + 1
    gone = [DeletedPartition(place, entries) for place, entries in cluster.partitions.items() if place.topic == topic]
    for place, _ in gone:
        cluster.partitions[place] = []
        cluster.firsts.pop(place, None)
        for group in cluster.groups.values():
            group.offsets.pop(place, None)
    return gone


class VanishingSchedule(Schedule):
    """As its base, and the inputs that are published to vanish now and then."""

    def __init__(self, topology: Topology, seed: int, *, policy: OnLostInput, replaces: bool = False) -> None:
        super().__init__(topology, seed)
        self.turns = {**TURNS, "vanish": 3, "litter": 0} | ({"replace": 1} if replaces else {})
        self.stops: list[InputLost] = []
        self.gone: list[DeletedPartition] = []
        self._policy = policy

    def settings(self, process: Process) -> MemberSettings:
        base = super().settings(process)
        limits = msgspec.structs.replace(base.limits, doubt_ms=DOUBT_MS, advance_ms=40)
        return msgspec.structs.replace(base, limits=limits, on_lost_input=self._policy)

    def heal(self) -> None:
        self._policy = OnLostInput.SKIP  # a member that was stopped is told to go on
        super().heal()

    def letters(self) -> list[DeadLetter]:
        """What was written down, in order."""
        codec = Codec(self.topology.catalog(), record_bytes_max=10_000_000)
        entries = self.cluster.committed_entries(Place(self.topology.dead_letters, 0))
        found = [codec.decode(entry.value or b"") for _, entry in entries]
        letters = [letter for letter in found if isinstance(letter, DeadLetter)]
        return [letter for letter in letters if letter.error in Cause.__members__]

    def _step_of(self, process: Process) -> None:
        try:
            super()._step_of(process)
        except InputLost as error:
            self._check(error)
            self.stops.append(error)
            self._leave(process)
            if self._policy is OnLostInput.SKIP:
                self._start(process)

    def _check(self, error: InputLost) -> None:
        """Nothing may have been skipped when a member stops: the offsets still stand before what was lost."""
        offsets = self.cluster.groups[error.processor].offsets
        for loss in error.losses:
            if loss.cause is not Cause.REPLACED and offsets[loss.place] != loss.first:
                raise AssertionError(f"{loss}, but the offset is {offsets[loss.place]}")

    def _places(self) -> list[Place]:
        """The inputs that somebody has begun to read: what was deleted before that, nobody can know of."""
        begun = {place for group in self.cluster.groups.values() for place in group.offsets}
        return sorted(place for place in self.cluster.partitions if place.topic in self._topics() and place in begun)

    def _topics(self) -> set[str]:
        """The inputs that only the outside writes to."""
        made = {s.name for p in self.topology.processors.values() for s in (p.events, *p.outputs)}
        streams = {s for p in self.topology.processors.values() for s in p.inputs if s.name not in made}
        return {self.topology.topic(stream) for stream in streams}

    def _vanish(self) -> None:
        if places := self._places():
            place = self.chance.choice(places)
            delete_below(self.cluster, place, self.chance.randrange(self.cluster.end(place) + 1))
            self.faults += 1

    def _replace(self) -> None:
        begun, topics = set(self._places()), self._topics()
        unread = {place.topic for place in self.cluster.partitions if place.topic in topics and place not in begun}
        if whole := sorted({place.topic for place in begun} - unread):
            self.gone += replace_topic(self.cluster, self.chance.choice(whole))
            self.faults += 1
