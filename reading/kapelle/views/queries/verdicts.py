"""The verdict of one subscription on a signal, with a reason that people can read.

| verdict | of | what it says |
|---|---|---|
| FIRED | trigger | it started an instance, with these partners |
| KEPT | trigger | it waits for signals of these names with the same join value |
| SKIPPED | trigger | all partners were there, but nothing was to be started |
| PASSED_OVER | trigger | the trigger has no use for it |
| EXPIRED, DROPPED | trigger | it waited for too long; the trigger was disarmed while it waited |
| TAKEN | step | the step goes on with it |
| OFFERED | both | it was offered, and nothing came of that so far |
| NOT_MATCHED | both | a condition is not fulfilled |
| NOT_ARMED | trigger | the trigger was not armed when it came |
"""

import sqlite3
from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.processors.signals.applying import trigger_subscription
from kapelle.processors.signals.bounds import params_in
from kapelle.processors.signals.matching import Condition, Scalar, conditions_of, failing
from kapelle.processors.triggers.definition import Trigger, trigger_of
from kapelle.views.queries.records import Record

OFFERED: Final = "OFFERED"
NOT_MATCHED: Final = "NOT_MATCHED"
NOT_ARMED: Final = "NOT_ARMED"
TAKEN: Final = "TAKEN"


def trigger_at(workflow_id: str, trigger_id: str) -> Record:
    """Which trigger a verdict is of."""
    return {"type": "TRIGGER", "workflow_id": workflow_id, "trigger_id": trigger_id}


def step_at(workflow_id: str, instance_id: int, step_id: str, number: int) -> Record:
    """Which dependency of which step a verdict is of."""
    return {
        "type": "STEP",
        "workflow_id": workflow_id,
        "workflow_instance_id": instance_id,
        "step_id": step_id,
        "dependency": number,
    }


def of_subscription(text: str) -> Record:
    """Whose subscription it is. Neither the id of a workflow nor that of a trigger holds a slash."""
    kind, workflow_id, rest = text.split("/", 2)
    if kind == "trigger":
        return trigger_at(workflow_id, rest)
    instance_id, _, step = rest.partition("/")
    step_id, _, number = step.rpartition("/")
    return step_at(workflow_id, int(instance_id), step_id, int(number))


# Triggers -------------------------------------------------------------------------------------------------------------


def of_trigger(connection: sqlite3.Connection, signal: sqlite3.Row, workflow_id: str, trigger_id: str) -> Record:
    """What a trigger made of a signal, whether it was offered or not."""
    about, at = trigger_at(workflow_id, trigger_id), (signal["name"], signal["sequence"])
    row = connection.execute(
        "SELECT * FROM trigger_signals WHERE workflow_id = ? AND trigger_id = ? AND name = ? AND sequence = ?",
        (workflow_id, trigger_id, *at),
    ).fetchone()
    if row is not None:
        return {**about, **_made_of(connection, row)}
    subscription = trigger_subscription(workflow_id, trigger_id)
    offer = connection.execute(
        "SELECT 1 FROM offers WHERE name = ? AND sequence = ? AND subscription = ?", (*at, subscription)
    ).fetchone()
    if offer is not None:
        reason = "It was offered; the trigger has not answered yet, or was disarmed meanwhile"
        return {**about, "verdict": OFFERED, "reason": reason}
    then = connection.execute(
        """SELECT * FROM subscriptions WHERE name = ?1 AND subscription = ?2 AND position < ?3
        AND (ended = 0 OR ended > ?3)""",
        (signal["name"], subscription, signal["position"]),
    ).fetchone()
    if then is None:
        return {**about, "verdict": NOT_ARMED, "reason": "The trigger was not armed when it arrived"}
    return {**about, **not_offered(then["match"], signal["params"])}


def _made_of(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    verdict, join_value = row["verdict"], row["join_value"]
    partners = msgspec.json.decode(row["partners"]) if row["partners"] else {}
    record: Record = {"verdict": verdict, "reason": row["reason"], "time": row["at_ms"]}
    if join_value is not None:
        record["join_value"] = msgspec.Raw(join_value.encode())
    if partners:
        record["partners"] = partners
    if verdict == "KEPT":
        names = waiting_for(connection, row)
        record |= {"waiting_for": names, "expire_time": row["expires_at_ms"]}
        record["reason"] = f"It waits for {_listed(names)} with the join value {join_value}"
    if verdict == "FIRED":
        start = start_of(connection, row)
        record |= {"request_id": row["request_id"], **start}
        record["reason"] = _start_reason(row, partners, start)
    return {name: value for name, value in record.items() if value is not None}


def waiting_for(connection: sqlite3.Connection, kept: sqlite3.Row) -> list[str]:
    """The names of which no signal with this join value is there."""
    trigger = definition_of(connection, kept["workflow_id"], kept["trigger_id"])
    rows = connection.execute(
        """SELECT DISTINCT name FROM trigger_signals INDEXED BY trigger_signals_kept
        WHERE workflow_id = ? AND trigger_id = ? AND join_value = ? AND verdict = 'KEPT'""",
        (kept["workflow_id"], kept["trigger_id"], kept["join_value"]),
    ).fetchall()
    there = {row["name"] for row in rows}
    return [] if trigger is None else [name for name in trigger.names if name not in there]


def definition_of(connection: sqlite3.Connection, workflow_id: str, trigger_id: str) -> Trigger | None:
    """What a trigger wants."""
    row = connection.execute(
        "SELECT definition FROM triggers WHERE workflow_id = ? AND trigger_id = ?", (workflow_id, trigger_id)
    ).fetchone()
    return None if row is None else trigger_of(row["definition"])


def start_of(connection: sqlite3.Connection, fired: sqlite3.Row) -> Record:
    """What came of the start that a trigger asked for."""
    rows = connection.execute(
        """SELECT kind, instance_id, body FROM requests WHERE request_id = ? AND workflow_id = ?
        AND kind IN ('InstanceCreated', 'StartDuplicated', 'CommandRefused') ORDER BY at_ms, position""",
        (fired["request_id"], fired["workflow_id"]),
    ).fetchall()
    created = next((row["instance_id"] for row in rows if row["kind"] != "CommandRefused"), None)
    if created is not None:
        is_first = _started_by(connection, fired["workflow_id"], created).get(fired["name"]) == fired["sequence"]
        return {"workflow_instance_id": created, "start": "CREATED" if is_first else "DUPLICATED"}
    if rows:
        return {"start": "REFUSED", "message": msgspec.json.decode(rows[0]["body"])["message"]}
    return {"start": "NOT_SEEN"}


def _started_by(connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> Mapping[str, int]:
    row = connection.execute(
        "SELECT initiator FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = 1",
        (workflow_id, instance_id),
    ).fetchone()
    return initiator_of("{}" if row is None or row["initiator"] is None else row["initiator"]).signal_id_map


def _start_reason(row: sqlite3.Row, partners: Mapping[str, int], start: Record) -> str:
    others = ", ".join(f"{name} {sequence}" for name, sequence in partners.items())
    with_them = f" with {others}" if others else ""
    where = f"{row['workflow_id']}/{start.get('workflow_instance_id')}"
    return {
        "CREATED": f"It started {where}{with_them}",
        "DUPLICATED": f"It fired{with_them}, but the same start was requested before: {where}",
        "REFUSED": f"It fired{with_them}, but the start was refused: {start.get('message')}",
        "NOT_SEEN": f"It fired{with_them}; the start is not visible yet, or has left the view with its instance",
    }[start["start"]]


# Steps and conditions -------------------------------------------------------------------------------------------------


def of_step(connection: sqlite3.Connection, signal: sqlite3.Row, about: Record) -> Record:
    """The outcome of an offer to a step."""
    row = connection.execute(
        """SELECT * FROM step_signals WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND number = ?
        AND name = ? AND sequence = ?""",
        (
            *(about[part] for part in ("workflow_id", "workflow_instance_id", "step_id", "dependency")),
            *(signal["name"], signal["sequence"]),
        ),
    ).fetchone()
    if row is None:
        instance = (about["workflow_id"], about["workflow_instance_id"])
        there = "SELECT 1 FROM instances WHERE workflow_id = ? AND instance_id = ?"
        reason = "It was offered; the step has not taken it: it no longer waits, or has not answered yet"
        if connection.execute(there, instance).fetchone() is None:
            reason = "It was offered; the instance has left the view, or is not visible yet"
        return {**about, "verdict": OFFERED, "reason": reason}
    reason = f"The step waited for it, and has it since run {row['run_id']}"
    return {**about, "verdict": TAKEN, "reason": reason, "time": row["at_ms"]}


def not_offered(match: str, params: str) -> Record:
    """Why a subscription was not offered a signal: the first condition that is not fulfilled."""
    given = params_in(params)
    failed = failing(conditions_of(match), given)
    if failed is None:
        return {"verdict": OFFERED, "reason": "It matches, and is about to be offered"}
    condition = {"param": failed.param, "operator": failed.operator.value, "value": failed.value}
    return {"verdict": NOT_MATCHED, "reason": _mismatch(failed, given), "condition": condition}


def _mismatch(failed: Condition, given: Mapping[str, Scalar]) -> str:
    if failed.param not in given:
        return f"Expected {failed}, but the signal has no {failed.param}"
    return f"Expected {failed}, but {failed.param} is {given[failed.param]!r}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
