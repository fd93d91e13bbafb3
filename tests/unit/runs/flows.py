"""Workflows in few words, and engines that run them: what the tests of `runs` begin with.

run = started(step("a", "b"), step("b", {"c": "x > 1"}, x=2), noop("c"))
run.engine.task(run, "a").succeed()
"""

from collections.abc import Mapping
from typing import Any

from kapelle.processors.params.stored import typed
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, RestartPolicy, StepStatus
from kapelle.testing.engine import Engine, RunHandle, TaskHandle

S = StepStatus
I = InstanceStatus  # noqa: E741 - the tables of these tests are read by columns, and the letter is the shortest column
WORKFLOW = "flow"
MINUTE_MS = 60_000
DAY_MS = 86_400_000
UNTIL_STARTING = (
    S.CREATED,
    S.INITIALIZED,
    S.WAITING_FOR_SIGNALS,
    S.EVALUATING_PARAMS,
    S.WAITING_FOR_PERMITS,
    S.STARTING,
)
TYPES = {str: "STRING", int: "LONG", float: "DOUBLE", bool: "BOOLEAN"}
BEGINNING, INCOMPLETE, SPECIFIC = (
    RestartPolicy.RESTART_FROM_BEGINNING,
    RestartPolicy.RESTART_FROM_INCOMPLETE,
    RestartPolicy.RESTART_FROM_SPECIFIC,
)
# Fails for good at the first error, so that a test of failures needs no retries.
ONCE = {"error_retry_limit": 0, "platform_retry_limit": 0, "timeout_retry_limit": 0}

Json = dict[str, Any]


def step(step_id: str, *to: str | Mapping[str, str], **more: Any) -> Json:
    """A step of a worker. `to` names what comes after it, with conditions where there are any.

    Fields of a step are given by name; all else is a parameter: a value, or a definition.
    """
    successors: dict[str, str] = {}
    for one in to:
        successors.update({one: "true"} if isinstance(one, str) else one)
    # A parameter may be called `tags` too: its definition is an object.
    fields = {name: value for name, value in more.items() if name in FIELDS or isinstance(value, list)}
    params = {name: param(value) for name, value in more.items() if name not in fields}
    body = {"id": step_id, "type": "shell", "transition": {"successors": successors}, "params": params, **fields}
    return {"step": body}


FIELDS = frozenset({"type", "retry_policy", "failure_mode", "timeout", "idempotent", "sub_type"})


def param(value: Any) -> Json:
    """The definition of a parameter: an object is taken as it is, text after `=` is an expression."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value.startswith("="):
        return {"type": "LONG", "expression": value[1:]}
    return {"type": TYPES[type(value)], "value": value}


def noop(step_id: str, *to: str | Mapping[str, str], **more: Any) -> Json:
    """A step that is done at once."""
    return step(step_id, *to, type="NoOp", **more)


def pause(step_id: str, *to: str | Mapping[str, str], seconds: int = 60, **more: Any) -> Json:
    """A step that is done after a while."""
    return step(step_id, *to, type="Sleep", sleep_seconds=seconds, **more)


def pushed(*steps: Json, params: Mapping[str, Any] | None = None, **workflow: Any) -> Engine:
    """An engine that knows a workflow of these steps."""
    engine = Engine()
    given = {name: param(value) for name, value in (params or {}).items()}
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "PARALLEL"},
            "workflow": {"id": WORKFLOW, "steps": list(steps), "params": given, **workflow},
        }
    )
    assert engine.refusals() == []
    return engine


def started(*steps: Json, params: Mapping[str, Any] | None = None, **workflow: Any) -> RunHandle:
    """A run of a workflow of these steps."""
    return pushed(*steps, params=params, **workflow).start(WORKFLOW)


def task(run: RunHandle, step_id: str) -> TaskHandle:
    """The latest task of a step."""
    return run.engine.task(run, step_id)


def succeed(run: RunHandle, *step_ids: str) -> None:
    """The workers of these steps are done, one after the other."""
    for step_id in step_ids:
        task(run, step_id).succeed()


def fail(run: RunHandle, step_id: str, message: str = "it broke") -> None:
    """The worker of a step says that no retry will help."""
    task(run, step_id).fail(message, c.Report.FATAL_ERROR)


def passed(run: RunHandle, step_id: str, attempt: int = 1) -> list[StepStatus]:
    """The states that an attempt went through."""
    return [status for one in run.changes(step_id) if one.attempt == attempt for status in one.statuses]


def reason(run: RunHandle, step_id: str) -> str:
    """Why a step is in the state that it is in."""
    return run.changes(step_id)[-1].reason


def refused(run: RunHandle) -> str:
    """What the last refusal said."""
    return run.engine.refusals()[-1].message


def iterations(run: RunHandle, step_id: str) -> list[int]:
    """The iterations in which a step was created, in order."""
    return [one.iteration for one in run.changes(step_id) if S.CREATED in one.statuses]


def run_status(run: RunHandle) -> InstanceStatus:
    """How the latest run ended, taken alone."""
    return next(one.run_status for one in reversed(run.events()) if isinstance(one, c.RunEnded))


def value_of(run: RunHandle, step_id: str, name: str) -> Any:
    """A parameter that a step ended with."""
    return typed(run.params(step_id)[name])


def actions(run: RunHandle) -> list[tuple[Action, str | None]]:
    """What people did to the run, and to which step."""
    return [(one.action, one.step_id) for one in run.events() if isinstance(one, c.ActionTaken)]
