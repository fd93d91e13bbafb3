"""Is every table of an engine the fold of its history?"""

from typing import Any

from kapelle.testing.engine import Engine
from tests.proof.checks import table_violations


def differing(engine: Engine) -> list[str]:
    """What differs between the tables and the fold of history."""
    shards = [(s.processor, s.partition, s.state) for s in engine.runtime.member.shards.values()]
    found: dict[str, dict[int, list[tuple[str, Any]]]] = {}
    for processor, partition, _ in shards:
        history = list(engine.history(processor.events, partition))
        found.setdefault(processor.events.name, {})[partition] = history
    return table_violations(shards, found)
