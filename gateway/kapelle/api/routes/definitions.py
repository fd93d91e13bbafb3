"""Pushing and checking definitions, as JSON or as YAML."""

import msgspec
from fastapi import APIRouter, Request, Response

from kapelle.api.answers.workflows import Pushed, Valid
from kapelle.api.callers import Writer
from kapelle.api.commands import Question, ask
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest, NotSeen
from kapelle.api.routes.guards import ADMIN, READS, VIEWER, WRITES
from kapelle.api.shapes import ok
from kapelle.processors.definitions import DefinitionRefused, parse_push
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import CommandStatus
from kapelle.views.queries import workflows as queries

router = APIRouter(prefix="/workflows", tags=["workflows"])

JSON_BODY: dict[str, object] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
}
YAML_BODY: dict[str, object] = {
    "requestBody": {"required": True, "content": {"application/yaml": {"schema": {"type": "string"}}}}
}


class _Workflow(msgspec.Struct):
    id: str


class _Outline(msgspec.Struct):
    """What must be known of a push to hand it on; all else is the engine's to judge."""

    workflow: _Workflow


@router.post("", summary="Push a version", dependencies=ADMIN, responses=WRITES | ok(Pushed), openapi_extra=JSON_BODY)
async def push(request: Request, here: Here, caller: Writer) -> Response:
    """Add a version to a workflow. The first version creates the workflow."""
    return await _push(await _text(request), here, caller)


@router.post(
    "/yaml",
    summary="Push a version in YAML",
    dependencies=ADMIN,
    responses=WRITES | ok(Pushed),
    openapi_extra=YAML_BODY,
)
async def push_yaml(request: Request, here: Here, caller: Writer) -> Response:
    """Add a version to a workflow, from a definition in YAML."""
    return await _push(await _from_yaml(await _text(request), here), here, caller)


@router.put(
    "/actions/validate",
    summary="Check a definition",
    dependencies=VIEWER,
    responses=READS | ok(Valid),
    openapi_extra=JSON_BODY,
)
async def validate(request: Request, here: Here) -> Response:
    """Check whether a push would be accepted. A refusal lists all problems. Nothing is pushed."""
    return await _validated(await _text(request), here)


@router.put(
    "/actions/validate/yaml",
    summary="Check a definition in YAML",
    dependencies=VIEWER,
    responses=READS | ok(Valid),
    openapi_extra=YAML_BODY,
)
async def validate_yaml(request: Request, here: Here) -> Response:
    """Check whether a push of a definition in YAML would be accepted. Nothing is pushed."""
    return await _validated(await _from_yaml(await _text(request), here), here)


async def _text(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"Expected a definition as UTF-8, but {error}") from None


async def _from_yaml(text: str, here: Context) -> str:
    from kapelle.processors.definitions.yaml_form import yaml_push  # noqa: PLC0415 - PyYAML is slow to import

    try:
        return await here.checks.run(yaml_push, text)
    except DefinitionRefused as refused:
        raise _bad_definition(refused) from None


async def _validated(text: str, here: Context) -> Response:
    try:
        await here.checks.run(parse_push, text, runnable=True)
    except DefinitionRefused as refused:
        raise _bad_definition(refused) from None
    return json_response({"valid": True})


def _bad_definition(refused: DefinitionRefused) -> BadRequest:
    errors = [str(problem) for problem in refused.problems]
    count = len(errors)
    return BadRequest(f"Expected a definition that can be run, but found {count} problem{'s' * (count != 1)}", errors)


async def _push(text: str, here: Context, caller: Writer) -> Response:
    outline = await _outline(text, here)
    workflow_id = outline.workflow.id
    question = Question(
        WORKFLOW_COMMANDS,
        workflow_id,
        c.PushVersion(caller.request_id, caller.user, text),
        workflow_id,
    )
    outcome = await ask(here, caller, question)
    version = outcome.body["version"]
    record = await here.read(queries.definition, workflow_id, str(version))
    if record is None:
        raise NotSeen(caller.request_id)
    about = {
        "request_id": caller.request_id,
        "status": "DUPLICATED" if outcome.body["status"] == CommandStatus.UNCHANGED else "CREATED",
        "workflow_id": workflow_id,
        "workflow_version_id": version,
    }
    return json_response({**about, **record})


async def _outline(text: str, here: Context) -> _Outline:
    """Where to send a push. If it does not even tell that, all that is wrong with it is told here."""
    try:
        outline = msgspec.json.decode(text, type=_Outline)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        outline = None
    if outline is None or not 0 < len(outline.workflow.id) <= 256:
        await _validated(text, here)
        raise BadRequest("Expected a definition with workflow.id, but found none")
    return outline
