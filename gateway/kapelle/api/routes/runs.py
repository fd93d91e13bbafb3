"""Starting instances, restarting them, and ending them."""

import sqlite3
import time
from typing import Final

from fastapi import APIRouter, Request, Response

from kapelle.api.answers.instances import SettledInstance, SettledRun, Started
from kapelle.api.bodies import ActionBody, Policy, RestartBody, StartBody
from kapelle.api.callers import Caller, EndAction, EndActionAt, InstanceAt, RunAt, VersionAt, Writer, number_of
from kapelle.api.commands import Question, ask, members_of, settled, text_of
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest
from kapelle.api.routes.guards import OPERATOR, WRITES
from kapelle.api.routes.workflows import tell, unblock_child
from kapelle.api.shapes import ok
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, RestartPolicy
from kapelle.views.projection.news import run_news
from kapelle.views.queries import instances as queries
from kapelle.views.queries.requests import Outcome

router = APIRouter(prefix="/workflows/{workflow_id}", tags=["runs"])

STARTED: Final = frozenset({"InstanceCreated", "StartDuplicated"})
INSTANCE: Final = "/instances/{instance_id}"


@router.post(
    "/versions/{version}/actions/start",
    summary="Start an instance",
    dependencies=OPERATOR,
    responses=WRITES | ok(Started),
)
async def start(request: Request, here: Here, caller: Writer, at: VersionAt, body: StartBody | None = None) -> Response:
    """Start an instance. Requests with the same request id return the same instance."""
    workflow_id, version = at
    said = body or StartBody()
    caller, members = caller.named(said.request_id), await members_of(request)
    begin = c.Start(
        caller.request_id,
        version=version,
        initiator=text_of(members, "initiator", '{"type":"MANUAL"}'),
        run_params=text_of(members, "run_params", "{}"),
        step_run_params=text_of(members, "step_run_params", "{}"),
        runtime_tags=text_of(members, "runtime_tags", "[]"),
        artifacts=text_of(members, "artifacts", "{}"),
        correlation_id=said.correlation_id,
        persist_failed_run=said.persist_failed_run,
    )
    command = c.StartInstances(caller.user, (begin,))
    outcome = await ask(here, caller, Question(WORKFLOW_COMMANDS, workflow_id, command, workflow_id))
    return json_response(await started(here, caller, outcome))


async def started(here: Context, caller: Caller, outcome: Outcome) -> dict[str, object]:
    """The answer to a start, or to a restart that makes a run."""
    instance_id, run_id = outcome.instance_id or 0, outcome.body["run_id"]
    known = await here.read(queries.run, outcome.workflow_id, instance_id, run_id) or {}
    is_new = outcome.kind == "InstanceCreated"
    return {
        "request_id": caller.request_id,
        "workflow_id": outcome.workflow_id,
        "workflow_version_id": known.get("workflow_version_id", outcome.body.get("version")),
        "workflow_instance_id": instance_id,
        "workflow_run_id": run_id,
        "workflow_uuid": known.get("workflow_uuid", caller.request_id),
        "status": outcome.body["status"] if is_new else "DUPLICATED",
        **({"message": outcome.body["reason"]} if is_new and outcome.body["reason"] else {}),
    }


@router.post(
    f"{INSTANCE}/actions/restart",
    summary="Restart an instance",
    dependencies=OPERATOR,
    responses=WRITES | ok(Started, SettledRun),
)
async def restart(
    request: Request, here: Here, caller: Writer, at: InstanceAt, body: RestartBody | None = None
) -> Response:
    """Start a new run of an instance that has ended. The run strategy applies to it as to a start.

    The restart of a child goes to the first ancestor that runs, or else to the root. The answer names the instance
    that carries it out.
    """
    said = body or RestartBody()
    if said.restart_policy is Policy.RESTART_FROM_SPECIFIC:
        raise BadRequest("Expected a restart from a step to name the step: …/steps/{step_id}/actions/restart")
    caller, members = caller.named(said.request_id), await members_of(request)
    command = c.RestartRun(
        caller.request_id,
        caller.user,
        RestartPolicy(said.restart_policy),
        run_params=text_of(members, "run_params", "{}"),
    )
    return await ask_run(here, caller, at, command)


async def ask_run(here: Context, caller: Caller, at: tuple[str, int], command: c.RestartRun | c.ActOnStep) -> Response:
    """Send a command to an instance. It may change a step, or lead to a new run: of a child, to one of an ancestor."""
    workflow_id, instance_id = at
    key = run_key(workflow_id, instance_id)
    question = Question(RUN_COMMANDS, key, command, workflow_id, instance_id, is_anywhere=True)
    outcome = await ask(here, caller, question)
    if outcome.kind in STARTED:
        return json_response(await started(here, caller, outcome))
    more = {
        "workflow_instance_id": outcome.instance_id or instance_id,
        "workflow_run_id": outcome.body.get("run_id"),
    }
    return json_response(settled(outcome, caller, **more))


# Ending ------------------------------------------------------------------------------------------------------------


@router.put(
    f"{INSTANCE}/actions/{{action}}",
    summary="Stop, kill or unblock an instance",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledInstance),
)
async def act_on_instance(
    here: Here, caller: Writer, at: InstanceAt, action: EndActionAt, body: ActionBody | None = None
) -> Response:
    """Stop or kill a queued or running instance, or unblock a failed one.

    A killed instance ends as FAILED. Unblocking lets the run strategy continue past the failed instance.
    """
    said = body or ActionBody()
    caller = caller.named(said.request_id)
    if action is EndAction.UNBLOCK:
        workflow_id, instance_id = at
        if is_inline(workflow_id):
            answer = await unblock_child(here, caller, at, said.reason)
            return json_response({**answer, "workflow_instance_id": instance_id})
        command = c.UnblockInstances(caller.request_id, caller.user, said.reason, instance_id)
        return json_response(await tell(here, caller, workflow_id, command))
    return await _terminate(here, caller, at, Action[action.name], said.reason)


@router.put(
    f"{INSTANCE}/runs/{{run_id}}/actions/{{action}}",
    summary="Stop, kill or unblock the latest run",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledInstance),
)
async def act_on_run(
    here: Here, caller: Writer, at: RunAt, action: EndActionAt, body: ActionBody | None = None
) -> Response:
    """Stop, kill or unblock an instance, but only if the named run is still its latest run."""
    workflow_id, instance_id, run_id = at
    number, latest = number_of(run_id, "run"), await here.read(queries.status_of, workflow_id, instance_id)
    if number is not None and latest is not None and latest[0] != number:
        raise BadRequest(f"Expected the latest run, which is {latest[0]}, but found {number}")
    return await act_on_instance(here, caller, (workflow_id, instance_id), action, body)


async def _terminate(here: Context, caller: Caller, at: tuple[str, int], action: Action, reason: str) -> Response:
    workflow_id, instance_id = at
    until = time.monotonic() + caller.wait_s
    command = c.TerminateInstance(caller.request_id, caller.user, instance_id, action, reason)
    question = Question(WORKFLOW_COMMANDS, workflow_id, command, workflow_id)
    if is_inline(workflow_id):  # iterations and rounds have no queue: `workflows` does not know them
        question = Question(RUN_COMMANDS, run_key(workflow_id, instance_id), command, workflow_id)
    outcome = await ask(here, caller, question)
    status = await _ended(here, at, until - time.monotonic())
    more = {"workflow_instance_id": instance_id, "workflow_status": status}
    return json_response(settled(outcome, caller, **more))


async def _ended(here: Context, at: tuple[str, int], wait_s: float) -> str | None:
    """The status of an instance once it has ended, or the one it has when there is no time left."""

    def look(connection: sqlite3.Connection) -> str | None:
        latest = queries.status_of(connection, *at)
        return latest[1] if latest is not None and latest[1] in INSTANCE_TERMINAL else None

    status = await here.seen([run_news(*at)], look, wait_s)
    if status is not None:
        return status
    latest = await here.read(queries.status_of, *at)
    return None if latest is None else latest[1]
