"""The parameters that every step of a type has without writing them."""

from collections.abc import Mapping
from typing import Any, Final

from kapelle.processors.params.definitions import Definition, definitions_of

Raw = Mapping[str, Any]


def _one(kind: str, internal_mode: str, **more: Any) -> Raw:
    return {"type": kind, "internal_mode": internal_mode, **more}


def _optional(kind: str = "STRING") -> Raw:
    return _one(kind, "OPTIONAL")


def _required(kind: str = "STRING") -> Raw:
    return _one(kind, "REQUIRED")


def _provided(value: object, kind: str = "STRING") -> Raw:
    return _one(kind, "PROVIDED", value=value)


def _map(internal_mode: str, **inner: Raw) -> Raw:
    return _one("MAP", internal_mode, value=inner)


LOOP: Final[Mapping[str, Raw]] = {
    "loop_params": {**_required("MAP"), "mode": "MUTABLE_ON_START"},
    "loop_index": _one("LONG", "RESERVED", value=-1),
}
CONTAINER: Final[Mapping[str, Raw]] = {
    "app_name": _provided("kapelle-job"),
    **{name: _optional() for name in ("cpu", "disk", "gpu", "memory", "job_deduplication_key", "owner_email")},
    "image": _required(),
    "command": _optional("STRING_ARRAY"),
    "args": _optional("STRING_ARRAY"),
    "env": _provided({}, "STRING_MAP"),
    "pre_stop": _map("OPTIONAL", exec=_map("OPTIONAL", command=_optional("STRING_ARRAY"))),
}
NOTEBOOK_RUN: Final = (
    'params.getFromInstance("workflow_id") + "_" + params.getFromInstance("workflow_instance_id") + "_"'
    ' + params.getFromInstance("workflow_run_id") + "_" + params.getFromStep("step_id") + "_"'
    ' + params.getFromStep("step_attempt_id")'
)
NOTEBOOK_OUTPUT: Final = (
    '"output_" + new DateTime(RUN_TS).toString("yyyyMMddHHmmss") + "__"'
    ' + params.getFromInstance("workflow_instance_id") + "_" + params.getFromStep("step_instance_id") + "_"'
    ' + params.getFromStep("step_instance_uuid") + ".ipynb"'
)
# What an HTTP status means for the step. It is a string: the step's runtime evaluates it when the answer is there.
HTTP_STATE: Final = (
    'if (status_code >= 200 && status_code < 300) return "DONE";'
    ' if (status_code >= 400 && status_code < 500) return "FATAL_ERROR";'
    ' return "USER_ERROR";'
)
JSON_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}

BY_TYPE: Final[Mapping[str, Mapping[str, Raw]]] = {
    "FOREACH": LOOP,
    "WHILE": {**LOOP, "condition": _one("BOOLEAN", "RESERVED", value=False)},
    "SUBWORKFLOW": {
        "subworkflow_id": {**_required(), "mode": "MUTABLE_ON_START"},
        "subworkflow_version": {**_provided("active"), "mode": "MUTABLE_ON_START"},
    },
    "SLEEP": {"sleep_seconds": _provided(3, "LONG")},
    "HTTP": {
        "http": _map(
            "REQUIRED",
            url=_required(),
            method=_provided("GET"),
            headers=_provided(JSON_HEADERS, "STRING_MAP"),
            body=_optional(),
        ),
        "status_code": _one("LONG", "OPTIONAL", value=200),
        "response_body": _one("STRING", "OPTIONAL", value=""),
        "state_expr": _provided(HTTP_STATE),
    },
    "KUBERNETES": {"kubernetes": _map("REQUIRED", **CONTAINER)},
    "NOTEBOOK": {
        "kubernetes": _map(
            "PROVIDED", **{name: definition for name, definition in CONTAINER.items() if name != "pre_stop"}
        ),
        "notebook": _map(
            "REQUIRED",
            init_command=_provided(""),
            **{name: _optional() for name in ("git_repo", "git_branch", "git_commit")},
            input_path=_required(),
            output_path=_one("STRING", "PROVIDED", expression=NOTEBOOK_OUTPUT),
            papermill_arguments=_optional("STRING_ARRAY"),
            run_id=_one("STRING", "PROVIDED", expression=NOTEBOOK_RUN),
        ),
    },
}
TYPE_DEFAULTS: Final[Mapping[str, Mapping[str, Definition]]] = {
    step_type: definitions_of(params, trusted=True) for step_type, params in BY_TYPE.items()
}
