"""Every call of the HTTP API as data: the request, and the type of its answer. Other modules send it."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from kapelle.client import results as r
from kapelle.client.options import InstanceFilters, ResumeOptions, StartOptions, StepRestartOptions
from kapelle.client.parameters import params_json
from kapelle.client.workflows import Workflow

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BASE: Final = "/api/v3"
JSON: Final = "application/json"
YAML: Final = "application/yaml"
Params = Mapping[str, object]
Definition = Workflow | Mapping[str, object] | str
QueryValue = str | int | list[str]

_encode = msgspec.json.Encoder(decimal_format="number").encode


class Call(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """A request. Reads have no key; a write with the same key twice is the same write."""

    method: str
    path: str
    answer: type[T_co]
    query: Mapping[str, QueryValue] = {}
    content: bytes | None = None
    content_type: str = JSON
    key: str | None = None


def request_id() -> str:
    """An id that no request had before."""
    return uuid.uuid4().hex


def _path(*parts: str | int) -> str:
    return "/".join([BASE, *(_quoted(str(part)) for part in parts)])


def _quoted(part: str) -> str:
    """A part of a path. Dots alone would be taken for this folder, or the one above."""
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def _query(**given: QueryValue | None) -> dict[str, QueryValue]:
    return {name: value for name, value in given.items() if value is not None and value != []}


def read(answer: type[T], *parts: str | int, **query: QueryValue | None) -> Call[T]:
    """Ask for what is at a path."""
    return Call(method="GET", path=_path(*parts), answer=answer, query=_query(**query))


def write(method: str, answer: type[T], *parts: str | int, body: object = None, key: str | None = None) -> Call[T]:
    """Change what is at a path, once for each key."""
    content = None if body is None else _encode(body)
    return Call(method=method, path=_path(*parts), answer=answer, content=content, key=key or request_id())


def remove(answer: type[T], *parts: str | int, key: str | None = None, **query: QueryValue | None) -> Call[T]:
    """Delete what is at a path, once for each key."""
    path = _path(*parts)
    return Call(method="DELETE", path=path, answer=answer, query=_query(**query), key=key or request_id())


def members(**given: object) -> dict[str, object]:
    """The members of a body that were given."""
    return {name: value for name, value in given.items() if value is not None}


def _params(given: Params | None) -> dict[str, object] | None:
    return params_json(given) if given else None


# Workflows -----------------------------------------------------------------------------------------------------------


def _definition(definition: Definition, *, is_yaml: bool) -> tuple[bytes, str]:
    if isinstance(definition, Workflow):
        return definition.to_json().encode(), JSON
    if isinstance(definition, str):
        return definition.encode(), YAML if is_yaml else JSON
    return _encode(definition), JSON


def push(definition: Definition, *, is_yaml: bool = False, key: str | None = None) -> Call[r.Pushed]:
    content, kind = _definition(definition, is_yaml=is_yaml)
    path = _path("workflows", *(["yaml"] if kind == YAML else []))
    return Call(method="POST", path=path, answer=r.Pushed, content=content, content_type=kind, key=key or request_id())


def validate(definition: Definition, *, is_yaml: bool = False) -> Call[r.Valid]:
    content, kind = _definition(definition, is_yaml=is_yaml)
    path = _path("workflows", "actions", "validate", *(["yaml"] if kind == YAML else []))
    return Call(method="PUT", path=path, answer=r.Valid, content=content, content_type=kind)


def get_version(workflow_id: str, version: str | int) -> Call[r.Version]:
    return read(r.Version, "workflows", workflow_id, "versions", version)


def list_versions(workflow_id: str, limit: int | None, cursor: str | None) -> Call[r.Page[r.Version]]:
    path = ("workflows", workflow_id, "versions", "pagination")
    return read(r.Page[r.Version], *path, limit=limit, cursor=cursor)


def list_workflows(prefix: str, limit: int | None, cursor: str | None) -> Call[r.Page[r.WorkflowEntry]]:
    return read(r.Page[r.WorkflowEntry], "workflows", prefix=prefix or None, limit=limit, cursor=cursor)


def overview(workflow_id: str) -> Call[r.Overview]:
    return read(r.Overview, "workflows", workflow_id, "overview")


def matrix(workflow_id: str, limit: int | None) -> Call[r.Matrix]:
    return read(r.Matrix, "workflows", workflow_id, "matrix", limit=limit)


def activate(workflow_id: str, version: str | int, key: str | None) -> Call[r.Done]:
    return write("PUT", r.Done, "workflows", workflow_id, "versions", version, "actions", "activate", key=key)


def act_on_workflow(workflow_id: str, action: str, reason: str, key: str | None) -> Call[r.Done]:
    body = members(reason=reason or None) or None
    return write("PUT", r.Done, "workflows", workflow_id, "actions", action, body=body, key=key)


def delete(workflow_id: str, key: str | None) -> Call[r.Done]:
    return write("DELETE", r.Done, "workflows", workflow_id, key=key)


def change_properties(workflow_id: str, changes: Mapping[str, object], key: str | None) -> Call[r.Done]:
    return write("POST", r.Done, "workflows", workflow_id, "properties", body=dict(changes), key=key)


# Instances -----------------------------------------------------------------------------------------------------------


def _instance(workflow_id: str, instance_id: int) -> tuple[str | int, ...]:
    return "workflows", workflow_id, "instances", instance_id


def start(
    workflow_id: str,
    version: str | int,
    *,
    run_params: Params | None,
    step_run_params: Mapping[str, Params] | None,
    more: StartOptions,
) -> Call[r.Started]:
    key = more.get("request_id") or request_id()
    body = members(
        run_params=_params(run_params),
        step_run_params={step: params_json(given) for step, given in step_run_params.items()}
        if step_run_params
        else None,
        **{name: value for name, value in more.items() if name != "request_id"},
    )
    path = ("workflows", workflow_id, "versions", version, "actions", "start")
    return write("POST", r.Started, *path, body=body, key=key)


def get_instance(
    workflow_id: str, instance_id: int, run_id: int | None, *, aggregated: bool = False
) -> Call[r.InstanceRecord]:
    run = () if run_id is None else ("runs", run_id)
    more: dict[str, QueryValue] = {"aggregated": "true", "enriched": "true"} if aggregated else {}
    return read(r.InstanceRecord, *_instance(workflow_id, instance_id), *run, **more)


def list_instances(
    workflow_id: str | None, filters: InstanceFilters, limit: int | None, cursor: str | None
) -> Call[r.Page[r.InstanceRecord]]:
    path = ("workflows", "instances") if workflow_id is None else ("workflows", workflow_id, "instances")
    status = filters.get("status", ())
    return read(
        r.Page[r.InstanceRecord],
        *path,
        status=[status] if isinstance(status, str) else list(status),
        tag=list(filters.get("tags", ())),
        param=[f"{name}={_word(value)}" for name, value in filters.get("params", {}).items()],
        initiator=filters.get("initiator"),
        since=_moment(filters.get("since")),
        until=_moment(filters.get("until")),
        backfill_id=filters.get("backfill_id"),
        limit=limit,
        cursor=cursor,
    )


def _word(value: str | int | bool | float) -> str:
    """A value as it stands in a filter: strings as they are, all else as JSON has it."""
    return value if isinstance(value, str) else _encode(value).decode()


def _moment(given: int | str | datetime | None) -> int | str | None:
    return given.isoformat() if isinstance(given, datetime) else given


def count_instances(workflow_id: str | None) -> Call[r.Counts]:
    return read(r.Counts, "workflows", "instances", "counts", workflow_id=workflow_id)


def history(workflow_id: str, instance_id: int) -> Call[r.History]:
    return read(r.History, *_instance(workflow_id, instance_id), "events")


def list_runs(workflow_id: str, instance_id: int) -> Call[r.Page[r.InstanceRecord]]:
    return read(r.Page[r.InstanceRecord], *_instance(workflow_id, instance_id), "runs")


def timeline(workflow_id: str, instance_id: int) -> Call[r.Timeline]:
    return read(r.Timeline, *_instance(workflow_id, instance_id), "timeline")


def act_on_instance(workflow_id: str, instance_id: int, action: str, *, reason: str, key: str | None) -> Call[r.Done]:
    path = (*_instance(workflow_id, instance_id), "actions", action)
    return write("PUT", r.Done, *path, body=members(reason=reason or None) or None, key=key)


def restart(
    workflow_id: str, instance_id: int, *, policy: str, run_params: Params | None, key: str | None
) -> Call[r.Started]:
    path = (*_instance(workflow_id, instance_id), "actions", "restart")
    return write("POST", r.Started, *path, body=members(restart_policy=policy, run_params=_params(run_params)), key=key)


# Steps ---------------------------------------------------------------------------------------------------------------


def list_steps(workflow_id: str, instance_id: int, run_id: int | None) -> Call[list[r.StepRecord]]:
    run = () if run_id is None else ("runs", run_id)
    return read(list[r.StepRecord], *_instance(workflow_id, instance_id), *run, "steps")


def get_step(
    workflow_id: str, instance_id: int, step_id: str, *, run_id: int | None, attempt: int | None
) -> Call[r.StepRecord]:
    at = _instance(workflow_id, instance_id)
    if run_id is None and attempt is None:
        return read(r.StepRecord, *at, "steps", step_id)
    path = ("runs", run_id or "latest", "steps", step_id, "attempts", attempt or "latest")
    return read(r.StepRecord, *at, *path)


def list_children(
    at: tuple[str, int, str], *, status: str | Iterable[str], limit: int | None, cursor: str | None
) -> Call[r.Page[r.InstanceRecord]]:
    workflow_id, instance_id, step_id = at
    path = (*_instance(workflow_id, instance_id), "steps", step_id, "children")
    statuses = [status] if isinstance(status, str) else list(status)
    return read(r.Page[r.InstanceRecord], *path, status=statuses, limit=limit, cursor=cursor)


def restart_step(at: tuple[str, int, str], *, params: Params | None, more: StepRestartOptions) -> Call[r.Done]:
    workflow_id, instance_id, step_id = at
    path = (*_instance(workflow_id, instance_id), "steps", step_id, "actions", "restart")
    body = members(
        step_run_params=_params(params),
        restart_policy=more.get("policy"),
        upstream_restart_mode="RESTART_FROM_INLINE_ROOT" if more.get("from_inline_root") else None,
    )
    return write("POST", r.Done, *path, body=body, key=more.get("request_id"))


def act_on_step(at: tuple[str, int, str], action: str, *, reason: str, key: str | None) -> Call[r.Done]:
    workflow_id, instance_id, step_id = at
    path = (*_instance(workflow_id, instance_id), "steps", step_id, "actions", action)
    return write("PUT", r.Done, *path, body=members(reason=reason or None) or None, key=key)


def resume_step(at: tuple[str, int, str], *, params: Params | None, more: ResumeOptions) -> Call[r.Done]:
    workflow_id, instance_id, step_id = at
    run_id, attempt = more.get("run_id"), more.get("attempt")
    body = members(step_run_params=_params(params), reason=more.get("reason") or None) or None
    path: tuple[str | int, ...] = (*_instance(workflow_id, instance_id), "steps", step_id)
    if run_id is not None or attempt is not None:
        which = ("runs", run_id or "latest", "steps", step_id, "attempts", attempt or "latest")
        path = ("workflows", "steps", "breakpoints", *_instance(workflow_id, instance_id)[1:], *which)
    return write("PUT", r.Done, *path, "actions", "resume", body=body, key=more.get("request_id"))


def health() -> Call[r.Health]:
    return Call(method="GET", path="/health", answer=r.Health)
