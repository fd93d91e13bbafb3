"""What is asked of the engine: workflows of every run strategy, and starts of them, most of them more than once.

extract ─┬▶ load ──┬▶ report ─▶ close
         └▶ audit ─┘
"""

import json
import random
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import Rule
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from tests.proof.workload import Published

AUTHOR: Final = "proof"
LEASE_S: Final = 3
BACKOFF_S: Final = 1
PARALLEL_MAX: Final = 5
REPEATED_WITHIN_S: Final = 8.0
SUCCESSORS: Final[dict[str, tuple[str, ...]]] = {
    "extract": ("load", "audit"),
    "load": ("report",),
    "audit": ("report",),
    "report": ("close",),
    "close": (),
}
WELL, DOOMED = "well", "doomed"


class Family(msgspec.Struct, frozen=True):
    """Some workflows of one run strategy, and how large their share of all instances is."""

    rule: Rule
    workflows: int
    share: float


FAMILIES: Final = (
    Family(Rule.SEQUENTIAL, 8, 0.20),
    Family(Rule.PARALLEL, 2, 0.34),
    Family(Rule.STRICT_SEQUENTIAL, 6, 0.14),
    Family(Rule.LAST_ONLY, 1, 0.12),
    Family(Rule.FIRST_ONLY, 1, 0.10),
    Family(Rule.SERIAL_LATEST_ONLY, 1, 0.10),
)


class Asked(msgspec.Struct, frozen=True):
    """A command to be published so long after the beginning, perhaps not for the first time."""

    after_s: float
    workflow_id: str
    command: c.StartInstances

    def published(self) -> Published:
        return WORKFLOW_COMMANDS.name, self.workflow_id, self.command


class Workload(msgspec.Struct, frozen=True):
    """All that is asked for. `rules` are by workflow id; `doomed` are the requests whose work fails for good."""

    rules: dict[str, Rule]
    asked: list[Asked]
    requests: frozenset[str]
    doomed: frozenset[str]

    def pushes(self) -> list[Published]:
        return [
            (WORKFLOW_COMMANDS.name, one, c.PushVersion(f"push-{one}", AUTHOR, json.dumps(definition(one, rule))))
            for one, rule in self.rules.items()
        ]


def workload(seed: int, instances: int, within_s: float) -> Workload:
    """So many starts, spread by chance over the time, each published one to three times."""
    chance = random.Random(seed)
    rules, requests, share = {}, list[tuple[str, str]](), 0.0
    for family in FAMILIES:
        share += family.share
        ids = [f"{family.rule.lower().replace('_', '-')}-{n}" for n in range(1, family.workflows + 1)]
        rules.update(dict.fromkeys(ids, family.rule))
        requests += [(ids[n % len(ids)], f"request-{n}") for n in range(len(requests), round(instances * share))]
    strict = [request_id for one, request_id in requests if rules[one] is Rule.STRICT_SEQUENTIAL]
    doomed = frozenset(chance.sample(strict, len(strict) // 4))
    asked = [one for command in _commands(requests, doomed, chance) for one in _spread(*command, chance, within_s)]
    return Workload(rules, sorted(asked, key=lambda one: one.after_s), frozenset(r for _, r in requests), doomed)


def _commands(
    requests: list[tuple[str, str]], doomed: frozenset[str], chance: random.Random
) -> list[tuple[str, c.StartInstances]]:
    """The requests in commands of one, and some of two or three."""
    by_workflow: dict[str, list[c.Start]] = {}
    for workflow_id, request_id in requests:
        mood = DOOMED if request_id in doomed else WELL
        run_params = json.dumps({"mood": {"type": "STRING", "value": mood}})
        by_workflow.setdefault(workflow_id, []).append(c.Start(request_id, run_params=run_params))
    found = []
    for workflow_id, starts in by_workflow.items():
        while starts:
            size = chance.choice((1, 1, 1, 1, 2, 3))
            found.append((workflow_id, c.StartInstances(AUTHOR, tuple(starts[:size]))))
            del starts[:size]
    return found


def _spread(workflow_id: str, command: c.StartInstances, chance: random.Random, within_s: float) -> list[Asked]:
    first = chance.random() * within_s
    again = [chance.choice((0.0, chance.random() * REPEATED_WITHIN_S)) for _ in range(chance.randrange(3))]
    return [Asked(first + later, workflow_id, command) for later in (0.0, *again)]


def definition(workflow_id: str, rule: Rule) -> dict[str, Any]:
    """The push of a workflow. Its steps are done by workers, and tried again soon."""
    strategy: dict[str, Any] = {"rule": rule.value}
    if rule is Rule.PARALLEL:
        strategy["workflow_concurrency"] = PARALLEL_MAX
    return {
        "properties": {"owner": AUTHOR, "run_strategy": strategy},
        "is_active": True,
        "workflow": {
            "id": workflow_id,
            "params": {"mood": {"type": "STRING", "value": WELL}},
            "steps": [{"step": _step(step_id, after)} for step_id, after in SUCCESSORS.items()],
        },
    }


def _step(step_id: str, after: tuple[str, ...]) -> dict[str, Any]:
    backoff = {"error_retry_backoff_in_secs": BACKOFF_S, "platform_retry_backoff_in_secs": BACKOFF_S}
    return {
        "id": step_id,
        "type": "Titus",
        "params": {
            "mood": {"type": "STRING", "value": "${mood}"},
            "lease_seconds": {"type": "LONG", "value": LEASE_S},
            "by": {"type": "STRING", "value": "nobody", "mode": "MUTABLE"},
        },
        "retry_policy": {
            "error_retry_limit": 50,
            "platform_retry_limit": 99,
            "backoff": {"type": "FIXED_BACKOFF", **backoff},
        },
        "transition": {"successors": dict.fromkeys(after, "true")},
    }
