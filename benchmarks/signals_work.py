"""What is announced to measure signals: workflows with triggers, and signals for them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.engine_work import AUTHOR, Command
from kapelle.schemas import contracts as c

NAMES: Final = 8  # a handful: the signals of one name have one writer


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    warm_up: int
    starts: int
    pairs: int
    plain: int
    alone: int
    rounds: int
    join_values: int
    subscriptions: int
    ids: int
    samples: int


FULL = Sizes(
    warm_up=1_000,
    starts=5_000,
    pairs=5_000,
    plain=50_000,
    alone=300,
    rounds=3,
    join_values=1_000_000,
    subscriptions=100_000,
    ids=10_000_000,
    samples=6_000,
)
QUICK = Sizes(
    warm_up=200,
    starts=400,
    pairs=400,
    plain=2_000,
    alone=30,
    rounds=1,
    join_values=20_000,
    subscriptions=5_000,
    ids=100_000,
    samples=2_400,
)


def push(workflow_id: str, names: dict[str, dict[str, Any]]) -> Command:
    """A workflow of one step that the engine executes, with a trigger on these names."""
    workflow = {
        "id": workflow_id,
        "signal_triggers": [{"definitions": names}],
        "steps": [{"step": {"id": "only", "type": "NoOp"}}],
    }
    text = json.dumps({"properties": {"owner": AUTHOR, "run_strategy": 1_000}, "workflow": workflow})
    return workflow_id, c.PushVersion(f"{workflow_id}-push", AUTHOR, text)


def singles(series: str) -> list[Command]:
    """Each workflow has its own name."""
    return [push(f"{series}-{number}", {f"{series}-{number}": {}}) for number in range(NAMES)]


def pairs(series: str) -> list[Command]:
    """Each workflow joins its own two names."""
    keys = {"join_keys": ["value"]}
    return [push(f"{series}-{n}", {f"{series}-left-{n}": keys, f"{series}-right-{n}": keys}) for n in range(NAMES)]


def strangers(series: str) -> list[Command]:
    """Workflows without a trigger on the announced signals."""
    wanted = {"match_params": {"value": {"value": -1, "operator": "="}}}
    return [push(f"{series}-{number}", {f"{series}-{number}": wanted}) for number in range(NAMES)]


def announcement(name: str, number: int) -> c.AnnounceSignal:
    """A signal with its own id and join value."""
    return c.AnnounceSignal(name, f"{name}-{number}", f'{{"value":{number}}}')


def for_singles(series: str, count: int) -> list[c.AnnounceSignal]:
    return [announcement(f"{series}-{number % NAMES}", number) for number in range(count)]


def for_pairs(series: str, count: int) -> list[c.AnnounceSignal]:
    """All of one side, then all of the other: every join value waits before its partner comes."""
    sides: Sequence[str] = ("left", "right")
    return [announcement(f"{series}-{side}-{number % NAMES}", number) for side in sides for number in range(count)]


def used_of(events: Sequence[c.InstanceCreated]) -> Iterator[tuple[str, str]]:
    """What started each instance, to see that nothing started two."""
    for event in events:
        yield event.workflow_id, json.dumps(json.loads(event.initiator)["signal_id_map"], sort_keys=True)
