"""The past as it was: on any history, folding up to a moment gives what the tables were then."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kapelle.testing.engine import Engine
from kapelle.topology.replay.fold import ShardName
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.lookup import folded
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import MemoryStore
from tests.property.runs.flows import workflows
from tests.property.runs.test_histories import COMMANDS, obey

Snapshot = dict[ShardName, str]


def snapshot(engine: Engine) -> tuple[Moment, Moment, Snapshot]:
    """The tables as they are now, and the moment by the clock and by the log."""
    shards = engine.runtime.member.shards
    offsets = {name: engine.runtime.log.end(shard.events) for name, shard in shards.items()}
    taken = {name: shard.state.fingerprint() for name, shard in shards.items()}
    return Moment(time_ms=engine.clock.now_ms), Moment(offsets=offsets), taken


def as_of(engine: Engine, moment: Moment) -> Snapshot:
    history = StoredHistory(engine.topology, engine.runtime.log)
    found = folded(history, engine.runtime.member.shards, moment, MemoryStore())
    return {fold.shard: fold.state.fingerprint() for fold, is_done in found if is_done}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    workflow=workflows(),
    commands=st.lists(COMMANDS, max_size=12),
    partitions=st.sampled_from([1, 3]),
)
def test_as_of_any_moment_the_tables_are_as_they_were(
    workflow: dict[str, Any], commands: list[tuple[Any, ...]], partitions: int
) -> None:
    engine = Engine(partitions=partitions)
    workflow_id = engine.push({"properties": {"owner": "ann"}, "workflow": workflow})
    run = engine.start(workflow_id)
    taken = [snapshot(engine)]

    for command in commands:
        engine.advance(1)
        obey(engine, run, command)
        taken.append(snapshot(engine))

    for by_time, by_offsets, live in taken:
        assert as_of(engine, by_offsets) == live
        assert as_of(engine, by_time) == live
