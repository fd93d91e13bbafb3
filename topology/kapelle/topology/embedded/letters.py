"""The dead letters of an embedded log, and the way back for their records. From any thread."""

from concurrent.futures import Future

from kapelle.schemas import Codec
from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.embedded.inbox import Position
from kapelle.topology.embedded.runtime import EmbeddedRuntime
from kapelle.topology.letters import Redrive, Shown, redrive_of, shown
from kapelle.topology.log import Place
from kapelle.topology.settings import Limits


class EmbeddedLetters:
    """What was put aside in a log of this process."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        topology = runtime.topology
        self._runtime = runtime
        self._place = Place(topology.dead_letters, 0)
        self._codec = Codec(topology.catalog(), record_bytes_max=letter_bytes_max(Limits().record_bytes_max))

    def last(self, count: int) -> list[Shown]:
        """The last so many, oldest first."""
        at, letters = max(self._runtime.log.end(self._place) - count, 0), list[Shown]()
        while records := self._runtime.log.read(self._place, at, count):
            letters += [shown(self._codec, record.offset, record.value or b"") for record in records]
            at = records[-1].offset + 1
        return letters[-count:]

    def get(self, offset: int) -> Shown | None:
        """One letter; None if there is none."""
        data = self._data(offset)
        return None if data is None else shown(self._codec, offset, data)

    def redrive(self, offset: int) -> tuple[Redrive, "Future[Position]"] | None:
        """Publish the record of a letter again, to where it was; None if there is no such letter.

        Raises `NotRedrivable`, or `UnknownPlace` for a record that stood elsewhere than here.
        """
        data = self._data(offset)
        if data is None:
            return None
        redrive = redrive_of(self._codec, offset, data)
        content = (redrive.key, redrive.value, redrive.headers)
        return redrive, self._runtime.publish_at(Place(redrive.topic, redrive.partition), content)

    def _data(self, offset: int) -> bytes | None:
        if not 0 <= offset < self._runtime.log.end(self._place):
            return None
        records = self._runtime.log.read(self._place, offset, 1)
        return records[0].value or b"" if records and records[0].offset == offset else None
