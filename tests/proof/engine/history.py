"""What a `read_committed` reader sees of the engine, sorted by workflow and by instance, in order."""

from typing import Any

import msgspec

from kapelle.processors.wiring import RUN_EVENTS, TASKS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from tests.proof.checks import Seen

Key = tuple[str, int]  # workflow id, instance id


class History(msgspec.Struct, frozen=True):
    """The events of each workflow and of each instance, and all tasks that were given out."""

    workflows: dict[str, list[Any]]
    runs: dict[Key, list[Any]]
    tasks: list[c.Task]

    def of_workflows(self, contract: type[Any]) -> list[Any]:
        return [event for events in self.workflows.values() for event in events if isinstance(event, contract)]

    def of_runs(self, contract: type[Any]) -> list[Any]:
        return [event for events in self.runs.values() for event in events if isinstance(event, contract)]


def history_of(seen: Seen) -> History:
    """The streams, taken apart."""
    history = History({}, {}, [])
    for key, event in _all(seen, WORKFLOW_EVENTS.name):
        history.workflows.setdefault(key, []).append(event)
    for key, event in _all(seen, RUN_EVENTS.name):
        workflow_id, _, number = key.rpartition("/")
        history.runs.setdefault((workflow_id, int(number)), []).append(event)
    history.tasks.extend(task for _, task in _all(seen, TASKS.name))
    return history


def _all(seen: Seen, stream: str) -> list[tuple[str, Any]]:
    partitions = seen[stream]
    return [row for partition in sorted(partitions) for row in partitions[partition]]
