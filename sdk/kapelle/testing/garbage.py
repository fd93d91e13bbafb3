"""Records that no reader can take, on the inputs of a topology: a fault of schedules, and its law.

Some cannot be decoded. Others are well-formed commands, but their keys are none of their topic, or beyond all bounds.

Each of them becomes one dead letter of each processor that reads its topic, whatever else happens to the members, and
nothing else comes of it.
"""

import random
from collections import Counter
from typing import Final

from kapelle.processors.keys import KeyForm
from kapelle.processors.messages import Foreign
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec, Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, DeadLetter, Report, RestartPolicy, Stage
from kapelle.testing.cluster import Cluster
from kapelle.topology.build import Topology
from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.log import Place

KEYS: Final = (None, b"", b"k", b"\xff\xfe", b"v/", b"x" * 100)
VALUES: Final = (None, b"", b"\xff", b"{}", b"\xc3\x01", b"\xc3\x01" + b"\x07" * 8 + b"?", b"\x00\x00\x00\x00\x09?")

# What callers may send, under keys that its topic cannot have.
COMMANDS: Final[tuple[Contract, ...]] = (
    c.RestartRun("garbage", "eve", RestartPolicy.RESTART_FROM_BEGINNING),
    c.ReportTask("token", "load", "eve", Report.SUCCEEDED),
    c.ActOnStep("garbage", "eve", "load", Action.STOP, ""),
    c.TerminateInstance("garbage", "eve", 2**63 - 1, Action.STOP, ""),
    c.StartInstances("eve", (c.Start("garbage"),)),
    c.UnblockInstances("garbage", "eve", "", 2**63 - 1),
)
BAD_KEYS: Final = {
    KeyForm.INSTANCE: (
        None,
        b"",
        b"v",
        b"v/",
        b"/1",
        b"v/x",
        b"v/0",
        b"v/-1",
        b"v/%d" % 2**63,
        b"v/%d" % 2**64,
        b"\xff/1",
    ),
    KeyForm.WORKFLOW: (None, b"", b"v/1", b"/", b"\xff\xfe"),
}
WELL_FORMED_SHARE: Final = 0.5

At = tuple[Place, int]


class Garbage:
    """Publishes garbage, and remembers where."""

    def __init__(self, topology: Topology, cluster: Cluster, chance: random.Random) -> None:
        self._codec = Codec(topology.catalog())
        self._topology = topology
        self._cluster = cluster
        self._chance = chance
        self._streams = [
            s for name, s in topology.streams.items() if topology.readers[name] and Foreign not in s.contracts
        ]
        self.published: dict[At, str] = {}  # where, and on which stream

    def publish(self) -> None:
        """Publish a record that cannot be taken."""
        if not self._streams:
            return
        stream = self._chance.choice(self._streams)
        place = Place(self._topology.topic(stream), self._chance.randrange(self._topology.partitions(stream)))
        self.published[place, self._cluster.end(place)] = stream.name
        self._cluster.publish(place, *self._record(stream))

    def _record(self, stream: Stream) -> tuple[bytes | None, bytes | None]:
        """A key and a value."""
        commands = [command for command in COMMANDS if type(command) in stream.contracts]
        if commands and self._chance.random() < WELL_FORMED_SHARE:
            return self._chance.choice(BAD_KEYS[stream.key]), self._codec.encode(self._chance.choice(commands))
        return self._chance.choice(KEYS), self._chance.choice(VALUES)

    def violations(self, codec: Codec) -> list[str]:
        """Garbage that has not become one letter of each processor that reads it."""
        found = Counter[tuple[str, Place, int]]()
        reader = Codec(codec.catalog, record_bytes_max=letter_bytes_max(codec.record_bytes_max))
        for _, entry in self._cluster.committed_entries(Place(self._topology.dead_letters, 0)):
            letter = reader.decode(entry.value or b"")
            if isinstance(letter, DeadLetter) and letter.stage is Stage.DECODE:
                found[letter.processor, Place(letter.topic, letter.partition), letter.offset] += 1
        expected = Counter(
            (name, *at) for at, stream in self.published.items() for name in self._topology.readers[stream]
        )
        return [] if found == expected else [f"expected letters {expected - found}, found too many {found - expected}"]
