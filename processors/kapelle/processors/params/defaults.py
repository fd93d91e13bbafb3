"""The parameters that every workflow and every step has without writing them."""

from collections.abc import Mapping
from typing import Any, Final

from kapelle.processors.params.definitions import Definition, definitions_of


def _at(ts: str, zone: str, pattern: str, shift: str = "") -> dict[str, object]:
    """A time as text: `ts` and `zone` are expressions, `shift` is a member such as `.minusDays(1)`."""
    moment = f"new DateTime({ts}, DateTimeZone.forID({zone})){shift}"
    return {"type": "STRING", "mode": "MUTABLE_ON_START", "expression": f'return {moment}.toString("{pattern}");'}


def _unless_empty(field: str, otherwise: str) -> dict[str, object]:
    """A field of the instance, or something else if it has none."""
    text = (
        f'String given = params.getFromInstance("{field}");'
        f" return given == null || given.isEmpty() ? {otherwise} : given;"
    )
    return {"type": "STRING", "mode": "MUTABLE_ON_START", "expression": text}


def _reserved(kind: str, call: str) -> dict[str, object]:
    return {"type": kind, "internal_mode": "RESERVED", "expression": f"return {call};"}


DAY, HOUR = "yyyyMMdd", "HH"
LOCAL, PACIFIC, UTC = "WORKFLOW_CRON_TIMEZONE", '"America/Los_Angeles"', '"UTC"'
RUN, DERIVED = "RUN_TS", "DERIVED_RUN_TS"

WORKFLOW: Final[Mapping[str, Mapping[str, Any]]] = {
    "DSL_DEFAULT_TZ": _unless_empty("FIRST_TIME_TRIGGER_TIMEZONE", '"UTC"'),
    "WORKFLOW_CRON_TIMEZONE": _unless_empty("INITIATOR_TIMEZONE", "DSL_DEFAULT_TZ"),
    "RUN_TS": {"type": "LONG", "mode": "MUTABLE_ON_START", "expression": "return System.currentTimeMillis();"},
    "TARGET_RUN_DATE": _at(RUN, LOCAL, DAY),
    "TARGET_RUN_HOUR": _at(RUN, LOCAL, HOUR),
    "DERIVED_RUN_TS": {
        "type": "LONG",
        "mode": "MUTABLE_ON_START",
        "expression": "return Util.dateIntHourToTs(TARGET_RUN_DATE, TARGET_RUN_HOUR, WORKFLOW_CRON_TIMEZONE, 0, 0);",
    },
    "DERIVED_RUN_DATE_US_PACIFIC": _at(DERIVED, PACIFIC, DAY),
    "DERIVED_RUN_DATE_US_PACIFIC_MINUS_ONE": _at(DERIVED, PACIFIC, DAY, ".minusDays(1)"),
    "DERIVED_RUN_DATE_UTC": _at(DERIVED, UTC, DAY),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE": _at(DERIVED, UTC, DAY, ".minusDays(1)"),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE": _at(DERIVED, UTC, DAY, ".plusDays(1)"),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE_HOUR": _at(DERIVED, UTC, DAY, ".minusHours(1)"),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE_HOUR": _at(DERIVED, UTC, DAY, ".plusHours(1)"),
    "DERIVED_RUN_HOUR_US_PACIFIC": _at(DERIVED, PACIFIC, HOUR),
    "DERIVED_RUN_HOUR_UTC": _at(DERIVED, UTC, HOUR),
    "DERIVED_RUN_HOUR_UTC_MINUS_ONE_HOUR": _at(DERIVED, UTC, HOUR, ".minusHours(1)"),
    "DERIVED_RUN_HOUR_UTC_PLUS_ONE_HOUR": _at(DERIVED, UTC, HOUR, ".plusHours(1)"),
    "LOCAL_RUN_DATE": _at(RUN, LOCAL, DAY),
    "RUN_DATE": _at(RUN, UTC, DAY),
    "RUN_DATE_MINUS_1": _at(RUN, UTC, DAY, ".minusDays(1)"),
    "RUN_DATE_MINUS_7": _at(RUN, UTC, DAY, ".minusDays(7)"),
    "job_template_version": {"type": "STRING", "internal_mode": "OPTIONAL"},
    "owner": _reserved("STRING", 'params.getFromInstance("owner")'),
    "workflow_id": _reserved("STRING", 'params.getFromInstance("workflow_id")'),
}
STEP: Final[Mapping[str, Mapping[str, Any]]] = {
    "workflow_instance_id": _reserved("LONG", 'params.getFromInstance("workflow_instance_id")'),
    "step_instance_uuid": _reserved("STRING", 'params.getFromStep("step_instance_uuid")'),
    "step_attempt_id": _reserved("LONG", 'params.getFromStep("step_attempt_id")'),
    "step_id": _reserved("STRING", 'params.getFromStep("step_id")'),
}
DRY_RUN: Final[Mapping[str, Mapping[str, Any]]] = {
    name: {"type": "STRING", "value": "20210101"} for name in ("FROM_DATE", "TO_DATE")
}

WORKFLOW_DEFAULTS: Final[Mapping[str, Definition]] = definitions_of(WORKFLOW, trusted=True)
STEP_DEFAULTS: Final[Mapping[str, Definition]] = definitions_of(STEP, trusted=True)
DRY_RUN_DEFAULTS: Final[Mapping[str, Definition]] = definitions_of(DRY_RUN, trusted=True)
