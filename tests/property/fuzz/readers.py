"""Everybody who reads the log from outside the fold, over a world whose histories hold records of all kinds."""

import logging
from collections import Counter
from collections.abc import Iterator

from kapelle.lineage.events import LineageEvents
from kapelle.processors.wiring import CANCELLATIONS, TASKS
from kapelle.relay.unusable import told
from kapelle.topology.journal import EmbeddedJournal, Entry
from kapelle.topology.replay.errors import ApplyFailedAgain
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.lookup import folded
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import MemoryStore
from kapelle.tracing import fold as tracing
from kapelle.tracing.ids import Ids
from kapelle.tracing.spans import Past
from kapelle.views import Views
from tests.property.fuzz.world import World

_log = logging.getLogger("fuzz")


def entries(world: World) -> Iterator[Entry]:
    """All that a follower of the histories and tasks sees."""
    follower = EmbeddedJournal(world.runtime).follow((*world.histories, TASKS, CANCELLATIONS), {})
    while found := follower.take(1_000, 0.0):
        yield from found


def unreadable(world: World) -> int:
    """How many of them are without a value."""
    return sum(entry.value is None for entry in entries(world))


def viewed(world: World) -> int:
    """Fold all of it into a view, and tell how many records it lists as unreadable."""
    views = Views(EmbeddedJournal(world.runtime))
    try:
        while views.folding.step():
            pass
        assert views.lag() == 0
        [(count,)] = views.read(lambda connection: connection.execute("SELECT COUNT(*) FROM unreadable").fetchall())
    finally:
        views.close()
    return int(count)


def relayed(world: World) -> Counter[str]:
    """Tell all of it as spans and as lineage, and count what could not be told."""
    foldings: dict[tuple[str, int], tracing.Folding] = {}
    telling, ids, passed = LineageEvents("fuzz"), Ids("fuzz"), Counter[str]()
    for entry in entries(world):
        if entry.value is None or entry.stream not in tracing.FOLDINGS:
            continue
        folding = foldings.setdefault((entry.stream, entry.partition), tracing.FOLDINGS[entry.stream](ids))
        past = Past(entry, entry.stream, None)
        passed["spans"] += told(entry, lambda: folding.of(past), _log) is None  # noqa: B023 - called at once
        passed["lineage"] += told(entry, lambda: telling.of(entry), _log) is None  # noqa: B023 - called at once
    return passed


def replayed(world: World) -> int:
    """Fold every history, and tell how many records were passed over. An event that no longer applies is named."""
    count = 0
    history = StoredHistory(world.topology, world.runtime.log)
    for shard in world.runtime.member.shards:
        try:
            for fold, is_done in folded(history, [shard], Moment(passes_over=True), MemoryStore()):
                count += fold.unreadable.count if is_done else 0
        except (
            ApplyFailedAgain
        ) as error:  # a stranger's event that can be read, for something that is not there: it is named
            refuse_exhausted(error)
            count += 1
    return count


def refuse_exhausted(error: ApplyFailedAgain) -> None:
    """An event that takes all memory is a defect, whoever has written it."""
    if isinstance(error.__cause__, MemoryError):
        raise error


def applied(world: World) -> int:
    """Apply every event of the histories by itself, and tell how many applied. Those that do not are passed over."""
    count, history = 0, StoredHistory(world.topology, world.runtime.log)
    for shard in world.runtime.member.shards:
        fold = Folding(world.topology, shard, decode=decoder(history), store=MemoryStore())
        for records in history.read(fold.place, 0, history.ends([fold.place])[fold.place]):
            for record in records:
                try:
                    fold.take((record,))
                    count += 1
                except ApplyFailedAgain as error:
                    refuse_exhausted(error)
    return count
