"""What is announced, and which starts must come of it.

Workflows wait for one name, or join two or three over some join values. Each signal has an id of its own and is
announced one to four times: at once again, or later among the others. What must come of it is told by the model of the
property tests, which knows nothing of the engine.
"""

import json
import random
from typing import Any, Final

import msgspec

from kapelle.processors.wiring import SIGNALS, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from tests.proof.workload import Published
from tests.property.signals.model import Model, Rule, Signal, Wants

AUTHOR: Final = "prover"
GROUPS: Final = 2
COPIES_MAX: Final = 4
APART_MAX: Final = 2_000  # records between a signal and its repetitions, at most


def rules() -> dict[str, Rule]:
    """The workflows, each with one trigger."""
    found: dict[str, Rule] = {}
    for group in range(GROUPS):
        found[f"single-{group}"] = Rule({f"solo-{group}": Wants((("n", ">", 2),))})
        found[f"pair-{group}"] = Rule(
            {f"left-{group}": Wants((), ("value",)), f"right-{group}": Wants((("n", "!=", 3),), ("value",))}
        )
        found[f"triple-{group}"] = Rule({f"{name}-{group}": Wants((), ("value",)) for name in "xyz"})
    return found


class Work(msgspec.Struct, frozen=True):
    """The records of a proof, and the starts that must be there in the end."""

    pushes: list[Published]
    announced: list[Published]
    unique: int
    starts: list[tuple[str, tuple[tuple[str, str], ...]]]
    subscriptions: int


def work(seed: int, signals: int, values: int) -> Work:
    """So many different signals over so many join values."""
    chance = random.Random(seed)
    names = [name for rule in rules().values() for name in rule.wants]
    model = Model()
    for workflow_id, rule in rules().items():
        model.arm(workflow_id, rule)
    places: list[tuple[float, Signal]] = []
    for number in range(signals):
        name = chance.choice(names)
        params: dict[str, str | int] = {"value": chance.randrange(values), "n": chance.randrange(6)}
        signal = Signal(name, f"{name}-{number}", params)
        model.announce(signal)
        apart = [chance.choice((0.1, chance.random() * APART_MAX)) for _ in range(chance.randrange(COPIES_MAX))]
        places += [(number + later, signal) for later in (0.0, *apart)]
    places.sort(key=lambda place: place[0])
    return Work(
        pushes=[_push(workflow_id, rule) for workflow_id, rule in rules().items()],
        announced=[_announcement(signal) for _, signal in places],
        unique=signals,
        starts=model.starts,
        subscriptions=len(names),
    )


def _announcement(signal: Signal) -> Published:
    return SIGNALS.name, signal.name, c.AnnounceSignal(signal.name, signal.id, json.dumps(signal.params))


def _push(workflow_id: str, rule: Rule) -> Published:
    definitions = {
        name: {
            "match_params": {param: {"value": value, "operator": how} for param, how, value in want.conditions},
            "join_keys": list(want.join_keys),
        }
        for name, want in rule.wants.items()
    }
    request: dict[str, Any] = {
        "properties": {"owner": AUTHOR, "run_strategy": 1000},
        "workflow": {
            "id": workflow_id,
            "signal_triggers": [{"definitions": definitions}],
            "steps": [{"step": {"id": "only", "type": "NoOp"}}],
        },
    }
    return WORKFLOW_COMMANDS.name, workflow_id, c.PushVersion(f"push {workflow_id}", AUTHOR, json.dumps(request))
