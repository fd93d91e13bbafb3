"""Are the tables right? The changelog and the local directories must both hold what the fold of history gives."""

from pathlib import Path
from typing import Any

from kapelle.processors.processor import Processor
from kapelle.topology.build import Topology
from kapelle.topology.tables import Batch, Memory, MemoryStore, RocksStore, ShardMeta, ShardState
from tests.proof.checks import Seen, table_violations
from tests.proof.kafka import read_committed

Shards = list[tuple[Processor[Any], int, ShardState[Any]]]


def table_problems(bootstrap_servers: str, topology: Topology, directory: Path, seen: Seen) -> list[str]:
    """What differs between history, the changelogs and the directories of the last owners."""
    changelogs = from_changelogs(bootstrap_servers, topology)
    problems = [f"changelog: {p}" for p in table_violations(changelogs, seen)]
    stores = [RocksStore(path, Memory()) for path in sorted(directory.glob("*/tables"))]
    try:
        local = last_owned(topology, stores)
        problems += [f"directory: {p}" for p in table_violations(local, seen)]
    finally:
        for store in stores:
            store.close()
    return problems


def from_changelogs(bootstrap_servers: str, topology: Topology) -> Shards:
    """Every shard as its changelog alone gives it."""
    partitions = {topology.changelog(name): topology.processor_partitions(name) for name in topology.processors}
    changelogs = read_committed(bootstrap_servers, partitions)
    shards: Shards = []
    for name, processor in topology.processors.items():
        for partition, found in changelogs[topology.changelog(name)].items():
            store, batch = MemoryStore(), Batch()
            state = ShardState(processor, partition, store)
            state.restore(found, batch)
            store.write(batch)
            state.clear()
            shards.append((processor, partition, state))
    return shards


def last_owned(topology: Topology, stores: list[RocksStore]) -> Shards:
    """Every shard as its last owner left it: the directory that stands for most of the changelog."""
    shards: Shards = []
    for name, processor in topology.processors.items():
        for partition in range(topology.processor_partitions(name)):
            found = [ShardState(processor, partition, store) for store in stores]
            kept = [(meta, state) for state in found if (meta := state.meta()) is not None]
            if kept:
                shards.append((processor, partition, max(kept, key=_age)[1]))
    return shards


def _age(kept: tuple[ShardMeta, ShardState[Any]]) -> int:
    return kept[0].changelog_offset
