"""Running a member on Kafka until it is told to stop."""

import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from kapelle.topology.build import Topology
from kapelle.topology.crash import Crash, never
from kapelle.topology.errors import BadTopology
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.log import KafkaLog
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.member import Member
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import Memory, RocksStore, StoreCorrupt
from kapelle.topology.tables.writes import NumberedStore

INSTANCE_FILE = "instance"
HANDOVER_S = 5.0  # how long a predecessor may take to let go of the directory

_log = logging.getLogger("kapelle.run")


def instance_of(state_dir: Path) -> str:
    """The name of the process that owns this directory: made once, so that a restart fences what it left open."""
    path = state_dir / INSTANCE_FILE
    name = path.read_text().strip() if path.exists() else ""
    if not name:  # a file without a name was torn as it was written
        state_dir.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex[:12]
        path.write_text(name)
    return name


class KafkaMember:
    """A member on Kafka with its tables on disk. Call `run`; it leaves and closes whichever way it ends."""

    def __init__(  # noqa: PLR0913 - as of the member, each by its name
        self,
        topology: Topology,
        kafka: KafkaSettings,
        state_dir: Path,
        *,
        settings: MemberSettings | None = None,
        hosted: Sequence[str] = (),
        member: type[Member] = Member,
        crash: Crash = never,
    ) -> None:
        unknown = set(hosted) - set(topology.processors)
        if unknown:
            raise BadTopology(f"Expected processors among {', '.join(topology.processors)}, found {', '.join(unknown)}")
        Topics(topology, kafka).verify()
        self.hosted = tuple(hosted) or tuple(topology.processors)
        self._stop = threading.Event()
        self.store = _opened(state_dir / "tables")
        try:
            self.log = KafkaLog(topology, kafka, instance=instance_of(state_dir), hosted=self.hosted)
        except BaseException:
            self.store.close()
            raise
        self.member = member(topology, self.log, self.store, settings=settings, crash=crash)

    def run(self, done: Callable[[], bool] = lambda: False) -> None:
        """Join and fold until `stop` is called or `done` says so, then leave in good order."""
        damage: StoreCorrupt | None = None
        try:
            self.member.join()
            self.member.overtime.watch()
            self.member.rests = True
            while not self._stop.is_set() and not done():
                self.member.step()
        except StoreCorrupt as error:
            damage = error
            raise
        finally:
            self._leave(damage)

    def _leave(self, damage: StoreCorrupt | None) -> None:
        try:
            self.member.leave()
        finally:
            _close(self.store, damage)

    def stop(self) -> None:
        """Finish the cycle and leave. May be called from a signal handler or another thread."""
        self._stop.set()


def _close(store: RocksStore, damage: StoreCorrupt | None) -> None:
    """Close the tables. Those that are known to be damaged, or turn out to be while they are closed, are put away."""
    try:
        store.close()
    except StoreCorrupt as error:  # closing writes what is in memory
        damage = damage or error
    if damage is not None:
        _put_away(store.path, damage)


def _opened(path: Path) -> RocksStore:
    """Open the tables. What cannot be read is put away, and everything is restored from the changelogs."""
    try:
        return NumberedStore(path, Memory(), wait_s=HANDOVER_S)
    except StoreCorrupt as error:
        _put_away(path, error)
        return NumberedStore(path, Memory(), wait_s=HANDOVER_S)


def _put_away(path: Path, error: StoreCorrupt) -> None:
    """Damaged tables make room for new ones; they are kept, in case somebody wants to know why."""
    aside = path.with_name(f"{path.name}.corrupt-{uuid.uuid4().hex[:6]}")
    _log.warning("%s; moved to %s, to be restored from the changelogs", error, aside)
    path.rename(aside)
