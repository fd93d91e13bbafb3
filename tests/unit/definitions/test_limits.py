"""Every limit of a definition: what reaches it is accepted, and one more is refused with the limit."""

from collections.abc import Callable
from typing import Any

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push
from kapelle.processors.definitions.limits import PUSH_BYTES_MAX
from tests.unit.definitions.samples import changed, text_of

Json = dict[str, Any]
DAY_S = 86_400
BASE: Json = {
    "properties": {"owner": "ann"},
    "workflow": {"id": "small", "steps": [{"step": {"id": "only", "type": "NoOp", "retry_policy": {"backoff": {}}}}]},
}
STEP = "workflow.steps[0].step"
POLICY = f"{STEP}.retry_policy"


def at(place: str, made: Callable[[int], Any]) -> Callable[[int], Json]:
    """The smallest push with a value of that size in one place."""
    return lambda size: changed(place, made(size), BASE)


def noops(count: int, prefix: str = "s") -> list[Json]:
    return [{"step": {"id": f"{prefix}{number}", "type": "NoOp"}} for number in range(count)]


def loop(inside: list[Json], **more: Any) -> Json:
    params = {"loop_params": {"type": "MAP", "value": {"i": {"type": "LONG_ARRAY", "value": [1]}}}}
    return {"foreach": {"id": "fan", "params": params, "steps": inside, **more}}


def triggered(count: int) -> list[Json]:
    return [{"definitions": {f"signal-{number}": {"match_params": {}} for number in range(count)}}]


def backoff(name: str) -> Callable[[int], Any]:
    return lambda size: {"type": "FIXED_BACKOFF", name: size}


def padded(size: int) -> Json:
    bare = len(text_of({**BASE, "note": ""}).encode())
    return {**BASE, "note": "x" * (size - bare)}


LIMITS: dict[str, tuple[Callable[[int], Json], int]] = {
    "steps": (at("workflow.steps", noops), 300),
    "steps with those of inner blocks": (at("workflow.steps", lambda size: [loop(noops(size - 1))]), 300),
    "concurrency of a foreach": (at("workflow.steps", lambda size: [loop(noops(1), concurrency=size)]), 500),
    "workflow concurrency": (at("properties.run_strategy", lambda size: size), 1000),
    "step concurrency": (at("properties.step_concurrency", lambda size: size), 1000),
    "step concurrency of an instance": (at("workflow.instance_step_concurrency", lambda size: size), 999),
    "id of a workflow": (at("workflow.id", lambda size: "x" * size), 128),
    "id of a step": (at(f"{STEP}.id", lambda size: "x" * size), 128),
    "name of a workflow": (at("workflow.name", lambda size: "x" * size), 256),
    "description": (at("workflow.description", lambda size: "x" * size), 16_384),
    "retries after errors": (at(f"{POLICY}.error_retry_limit", lambda size: size), 99),
    "retries after failures of the platform": (at(f"{POLICY}.platform_retry_limit", lambda size: size), 99),
    "retries after time-outs": (at(f"{POLICY}.timeout_retry_limit", lambda size: size), 99),
    "delay after errors": (at(f"{POLICY}.backoff", backoff("error_retry_backoff_in_secs")), DAY_S),
    "delay after failures of the platform": (at(f"{POLICY}.backoff", backoff("platform_retry_backoff_in_secs")), DAY_S),
    "delay after time-outs": (at(f"{POLICY}.backoff", backoff("timeout_retry_backoff_in_secs")), DAY_S),
    "time-out of a workflow": (at("workflow.timeout", lambda size: size), 120 * DAY_S),
    "time-out of a step": (at(f"{STEP}.timeout", lambda size: size), 120 * DAY_S),
    "signals of a trigger": (at("workflow.signal_triggers", triggered), 8),
    "bytes of a push": (padded, PUSH_BYTES_MAX),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_reaches_a_limit_is_accepted_and_one_more_is_refused(name: str) -> None:
    sized, limit = LIMITS[name]

    parse_push(text_of(sized(limit)))

    with pytest.raises(DefinitionRefused):
        parse_push(text_of(sized(limit + 1)))


@pytest.mark.parametrize(
    "place", ["error_retry_backoff_in_secs", "platform_retry_backoff_in_secs", "timeout_retry_backoff_in_secs"]
)
def test_a_delay_is_at_least_a_second(place: str) -> None:
    parse_push(text_of(changed(f"{POLICY}.backoff", backoff(place)(1), BASE)))

    with pytest.raises(DefinitionRefused):
        parse_push(text_of(changed(f"{POLICY}.backoff", backoff(place)(0), BASE)))
