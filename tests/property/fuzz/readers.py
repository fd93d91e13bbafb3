"""Everybody who reads the log from outside the fold, over a world whose histories hold records of all kinds."""

from collections.abc import Iterator

from kapelle.lineage.events import Telling
from kapelle.processors.routes import CANCELLATIONS, RUN_EVENTS, SIGNAL_EVENTS, TASKS, WORKFLOW_EVENTS
from kapelle.topology.journal import EmbeddedJournal, Entry
from kapelle.topology.replay.errors import ReplayError
from kapelle.topology.replay.folding import Unreadable
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.looking import folded
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import MemoryStore
from kapelle.tracing.folding import FOLDINGS, FOLLOWED
from kapelle.tracing.ids import Ids
from kapelle.views import Views
from tests.property.fuzz.world import World

OTHERS = (TASKS, CANCELLATIONS)


def entries(world: World) -> Iterator[Entry]:
    """All that a follower of the histories sees."""
    follower = EmbeddedJournal(world.runtime).follow((*world.histories, *OTHERS), {})
    while found := follower.take(1_000, 0.0):
        yield from found
