"""Limits of tags, workflows and trees: who holds a permit, who waits for one, and in what place."""

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec

from kapelle.processors.keys import ids_in
from kapelle.processors.permits.tables import CLASSES
from kapelle.schemas.contracts import StepStatus
from kapelle.views.queries.index_pages import COUNTED_MAX, Search, count_before, page
from kapelle.views.queries.moments import moment_text
from kapelle.views.queries.pages import TEXT_MAX, Page, PageRequest
from kapelle.views.queries.records import Record
from kapelle.views.schema_gates import HOLDS, IN_FORCE, WAITS

NOTES_MAX: Final = 32
TAGS_SHOWN_MAX: Final = 100  # by name in the metrics
KINDS: Final = ("tag", "workflow", "tree")
QUEUE: Final = ("class", "turn", "ticket")
OF_ATTEMPT: Final = ("step_id", "run_id", "iteration", "attempt")
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

LIMIT: Final = "SELECT * FROM limits WHERE limited = ? AND max IS NOT NULL"
PERMIT: Final = """SELECT * FROM permits WHERE limited = ? AND key = ? AND step_id = ? AND run_id = ?
    AND iteration = ? AND attempt = ?"""
OLDEST: Final = f"""SELECT queued_at_ms FROM permits INDEXED BY permits_by_wait
    WHERE limited = ? AND state = {WAITS} ORDER BY queued_at_ms LIMIT 1"""  # noqa: S608 - of our own words
OLDEST_OF_KIND: Final = f"""SELECT queued_at_ms FROM permits INDEXED BY permits_by_kind
    WHERE kind = ? AND state = {WAITS} ORDER BY queued_at_ms LIMIT 1"""  # noqa: S608
NOTES: Final = "SELECT * FROM limit_notes WHERE limited = ? ORDER BY position DESC LIMIT ?"
OF_KIND: Final = f"""SELECT SUM(held), SUM(waiting) FROM limits INDEXED BY limits_by_kind
    WHERE kind = ? AND {IN_FORCE}"""  # noqa: S608


class LimitSum(msgspec.Struct, frozen=True):
    """How many attempts hold a permit and wait for one, and since when the first has waited."""

    name: str
    max: int | None
    held: int
    waiting: int
    oldest_ms: int | None


def limits_search(kind: str | None = None, prefix: str = "") -> Search:
    """Limits that are in force, of one kind and with names that begin so, or all of them, by what is limited."""
    begin = "" if kind is None else f"{kind}/{prefix}"
    where = (IN_FORCE, "limited >= ?", "limited < ?")
    return Search("limits INDEXED BY limits_in_force", ("limited",), tuple[str], where, (begin, begin + TEXT_MAX))


def holders_search(limited: str) -> Search:
    """The attempts that hold a permit, in the order in which they asked."""
    where = ("limited = ?", f"state = {HOLDS}")
    return Search("permits INDEXED BY permits_held", ("ticket",), tuple[Number], where, (limited,))


def waiting_search(limited: str) -> Search:
    """The attempts that wait for a permit: by criticality, then turns of workflows, then first come."""
    where = ("limited = ?", f"state = {WAITS}")
    return Search("permits INDEXED BY permits_waiting", QUEUE, tuple[Number, Number, Number], where, (limited,))


# Limits ---------------------------------------------------------------------------------------------------------------


def limits(connection: sqlite3.Connection, wanted: PageRequest, kind: str | None = None, prefix: str = "") -> Page:
    """Limits that are in force, by what is limited."""
    return page(connection, limits_search(kind, prefix), wanted, partial(_limit_record, connection))


def limit(connection: sqlite3.Connection, limited: str) -> Record | None:
    """A limit with its latest changes; None if there is no limit."""
    row = connection.execute(LIMIT, (limited,)).fetchone()
    if row is None:
        return None
    notes = connection.execute(NOTES, (limited, NOTES_MAX)).fetchall()
    changes = [{"author": note["author"], "log": note["log"], "timestamp": note["at_ms"]} for note in notes]
    return {**_limit_record(connection, row), "timeline": changes}


def _limit_record(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    kind, _, name = row["limited"].partition("/")
    extra: Record = msgspec.json.decode(row["extra"] or "{}", type=dict[str, msgspec.Raw])
    ours = {
        "limited": row["limited"],
        "kind": kind,
        **({"tag": name} if kind == "tag" else {"workflow_id": name} if kind == "workflow" else {"root": name}),
        "max_allowed": row["max"],
        "held": row["held"],
        "waiting": row["waiting"],
        "oldest_wait_time": _oldest(connection, OLDEST, row["limited"]) if row["waiting"] else None,
        "modify_time": row["set_at_ms"],
        "author": row["author"] or None,
        "extra_info": extra,
    }
    return {**extra, **ours}


def _oldest(connection: sqlite3.Connection, statement: str, of: str) -> int | None:
    row = connection.execute(statement, (of,)).fetchone()
    return None if row is None else int(row[0])


# Holders and those that wait ------------------------------------------------------------------------------------------


def holders(connection: sqlite3.Connection, limited: str, wanted: PageRequest) -> Page | None:
    """The attempts that hold a permit, in the order in which they asked; None if there is no limit."""
    row = connection.execute(LIMIT, (limited,)).fetchone()
    return None if row is None else page(connection, holders_search(limited), wanted, _holder_record, row["held"])


def waiting(connection: sqlite3.Connection, limited: str, wanted: PageRequest, now_ms: int) -> Page | None:
    """The attempts that wait for a permit, in the order of the queue; None if there is no limit."""
    row = connection.execute(LIMIT, (limited,)).fetchone()
    if row is None:
        return None
    queue = page(connection, waiting_search(limited), wanted, _asking_record, row["waiting"])
    first = queue["page_info"]["start_index"]
    for number, element in enumerate(queue["elements"]):
        element["place"] = None if first is None else first + number
        element["waiting_ms"] = max(now_ms - element["queued_time"], 0)
    return queue


def _asking_record(row: sqlite3.Row) -> Record:
    workflow_id, instance_id = ids_in(row["key"]) or (row["key"], None)
    return {
        "workflow_id": workflow_id,
        "workflow_instance_id": instance_id,
        "workflow_run_id": row["run_id"],
        "step_id": row["step_id"],
        "step_attempt_id": row["attempt"],
        "iteration": row["iteration"],
        "root_workflow_id": row["workflow_id"],
        "criticality": CLASSES[row["class"]].value,
        "ticket": row["ticket"],
        "turn": row["turn"],
        "queued_time": row["queued_at_ms"],
    }


def _holder_record(row: sqlite3.Row) -> Record:
    waited_ms = None if row["queued_at_ms"] is None else row["granted_at_ms"] - row["queued_at_ms"]
    return {**_asking_record(row), "granted_time": row["granted_at_ms"], "waited_ms": waited_ms or 0}


# A step ---------------------------------------------------------------------------------------------------------------


def permits_of(connection: sqlite3.Connection, attempt: sqlite3.Row) -> list[Record]:
    """The permits that an attempt needs, in the order in which it asks for them, as long as it waits for one."""
    if attempt["status"] != StepStatus.WAITING_FOR_PERMITS or attempt["permits"] is None:
        return []
    keys, held = msgspec.json.decode(attempt["permits"], type=list[str]), attempt["permits_held"] or 0
    return [_needed(connection, attempt, key, _standing(number, held)) for number, key in enumerate(keys)]


def _standing(number: int, held: int) -> str:
    """It asks for one after the other."""
    return "HELD" if number < held else "WAITING" if number == held else "NOT_REQUESTED"


def _needed(connection: sqlite3.Connection, attempt: sqlite3.Row, limited: str, standing: str) -> Record:
    about: Record = {"limited": limited, "status": standing}
    if standing != "WAITING":
        return about
    row = connection.execute(LIMIT, (limited,)).fetchone()
    permit = connection.execute(PERMIT, (limited, _key(attempt), *(attempt[name] for name in OF_ATTEMPT))).fetchone()
    about["since"] = attempt["permits_at_ms"] if permit is None else permit["queued_at_ms"] or attempt["permits_at_ms"]
    if row is None or permit is None or permit["state"] != WAITS:
        return about  # what the engine has told of the limit is still on its way to the view
    ahead = count_before(connection, waiting_search(limited), [permit[name] for name in QUEUE])
    return {
        **about,
        "max_allowed": row["max"],
        "held": row["held"],
        "waiting": row["waiting"],
        "place": None if ahead is None else ahead + 1,
    }


def _key(attempt: sqlite3.Row) -> str:
    return f"{attempt['workflow_id']}/{attempt['instance_id']}"


def wait_text(needed: Sequence[Record]) -> str | None:
    """What an attempt waits for, in a sentence; None if it waits for no permit."""
    awaited = next((permit for permit in needed if permit["status"] == "WAITING"), None)
    if awaited is None:
        return None
    text = f"a permit of {awaited['limited']}"
    if "waiting" in awaited:
        place = f"{awaited['place']:,}" if awaited["place"] is not None else f"beyond {COUNTED_MAX:,}"
        text += f": limit {awaited['max_allowed']:,}, {awaited['held']:,} held, place {place} of {awaited['waiting']:,}"
    return f"{text}, since {moment_text(awaited['since'])}"


# Metrics --------------------------------------------------------------------------------------------------------------


def tag_sums(connection: sqlite3.Connection) -> list[LimitSum]:
    """The first tags with a limit, by name."""
    text, given = limits_search("tag").rows(None, backwards=False)
    rows = connection.execute(f"{text} LIMIT ?", (*given, TAGS_SHOWN_MAX)).fetchall()
    return [_sum(connection, row) for row in rows]


def _sum(connection: sqlite3.Connection, row: sqlite3.Row) -> LimitSum:
    oldest_ms = _oldest(connection, OLDEST, row["limited"]) if row["waiting"] else None
    return LimitSum(row["limited"].partition("/")[2], row["max"], row["held"], row["waiting"], oldest_ms)


def kind_sums(connection: sqlite3.Connection) -> list[LimitSum]:
    """All limits of each kind together."""
    sums = []
    for kind in KINDS:
        held, waits = connection.execute(OF_KIND, (kind,)).fetchone()
        oldest_ms = _oldest(connection, OLDEST_OF_KIND, kind)
        sums.append(LimitSum(kind, None, held or 0, waits or 0, oldest_ms))
    return sums
