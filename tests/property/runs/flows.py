"""Workflows of any shape that a push accepts: acyclic ones, and ones with loops."""

from typing import Any

from hypothesis import strategies as st

Edge = tuple[int, int]
BEGIN = "begin"

# `n` counts the attempts of the run, so a loop that asks for it ends; `flag` and `z` are for workers to answer.
PARAMS: dict[str, Any] = {
    "n": {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"},
    "flag": {"type": "BOOLEAN", "value": True},
    "z": {"type": "LONG", "value": 1},
}
CONDITIONS = st.sampled_from(["true", "true", "false", "n % 2 == 0", "flag", "!flag", "z > 0", "10 / z > 1"])
TYPES = st.sampled_from(["shell", "shell", "NoOp", "Sleep"])
MODES = st.sampled_from(["FAIL_AFTER_RUNNING", "FAIL_AFTER_RUNNING", "IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
SIZES = st.integers(1, 6)


def name(number: int) -> str:
    return f"s{number}"


@st.composite
def forward_edges(draw: st.DrawFn, size: int) -> list[Edge]:
    """Edges from lower to higher numbers."""
    every = [(one, two) for one in range(size) for two in range(one + 1, size)]
    return draw(st.lists(st.sampled_from(every), unique=True, max_size=2 * size)) if every else []


def dominates(header: int, step: int, edges: list[Edge], size: int) -> bool:
    """Whether every way to a step passes the header: without the header it is not reached."""
    if header == step:
        return True
    reached = {one for one in range(size) if one != header and not any(two == one for _, two in edges)}
    for one in range(size):  # numbers are in order
        if one != header and any(before in reached for before, two in edges if two == one):
            reached.add(one)
    return step not in reached


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    """A workflow of any shape, with loops that are natural and end."""
    size = draw(SIZES)
    edges = draw(forward_edges(size))
    natural = [(one, two) for one in range(size) for two in range(one + 1) if dominates(two, one, edges, size)]
    back = draw(st.lists(st.sampled_from(natural), unique=True, max_size=2))
    roots = [one for one in range(size) if not any(two == one for _, two in edges)]
    steps = [
        {"step": {"id": BEGIN, "type": "NoOp", "transition": {"successors": dict.fromkeys(map(name, roots), "true")}}}
    ]
    for number in range(size):
        successors = {name(two): draw(CONDITIONS) for one, two in edges if one == number}
        successors |= {name(two): f"n < {draw(st.integers(0, 14))}" for one, two in back if one == number}
        steps.append({"step": draw(bodies(number, successors))})
    return {"id": "flow", "steps": steps, "timeout": "2 days"}


@st.composite
def bodies(draw: st.DrawFn, number: int, successors: dict[str, str]) -> dict[str, Any]:
    """A step with all that may be different about it."""
    kind = draw(TYPES)
    body: dict[str, Any] = {
        "id": name(number),
        "type": kind,
        "failure_mode": draw(MODES),
        "transition": {"successors": successors},
        "params": PARAMS
        | ({"sleep_seconds": {"type": "LONG", "value": draw(st.integers(0, 90))}} if kind == "Sleep" else {}),
    }
    if draw(st.booleans()):
        body["timeout"] = 60
    if kind == "shell":
        body["idempotent"] = draw(st.sampled_from([True, True, False]))
        body["retry_policy"] = {
            "error_retry_limit": draw(st.integers(0, 2)),
            "platform_retry_limit": draw(st.integers(0, 2)),
            "timeout_retry_limit": draw(st.integers(0, 1)),
        }
    return body
