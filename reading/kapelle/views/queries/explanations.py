"""Why something came of a signal, or did not: the verdict of every subscription of its time."""

import sqlite3
from typing import Final

from kapelle.views.queries.records import Record
from kapelle.views.queries.signals import refused_record, signal_record, signal_row
from kapelle.views.queries.verdicts import not_offered, of_step, of_subscription, of_trigger

OFFERS_MAX: Final = 500
OTHERS_MAX: Final = 500
REPETITIONS_MAX: Final = 50


def explained(connection: sqlite3.Connection, name: str, sequence: int | None) -> Record | None:
    """A signal with the verdict of each trigger and step that wanted to hear of its name when it came."""
    signal = signal_row(connection, name, sequence)
    if signal is None:
        return None
    offered = connection.execute(
        "SELECT subscription FROM offers WHERE name = ? AND sequence = ? ORDER BY at_ms, subscription LIMIT ?",
        (name, signal["sequence"], OFFERS_MAX + 1),
    ).fetchall()
    others = _others(connection, signal)
    verdicts = [_of_offer(connection, signal, row["subscription"]) for row in offered[:OFFERS_MAX]]
    verdicts += [
        {**of_subscription(row["subscription"]), **not_offered(row["match"], signal["params"])}
        for row in others[:OTHERS_MAX]
    ]
    return {
        **signal_record(signal),
        "status": "ACCEPTED",
        "repetitions": _repetitions(connection, signal),
        "verdicts": verdicts,
        "is_cut": len(offered) > OFFERS_MAX or len(others) > OTHERS_MAX,
    }


def _of_offer(connection: sqlite3.Connection, signal: sqlite3.Row, subscription: str) -> Record:
    about = of_subscription(subscription)
    if about["type"] == "STEP":
        return of_step(connection, signal, about)
    return of_trigger(connection, signal, about["workflow_id"], about["trigger_id"])


def _others(connection: sqlite3.Connection, signal: sqlite3.Row) -> list[sqlite3.Row]:
    """The subscriptions of that moment that were not offered the signal."""
    return connection.execute(
        """SELECT subscription, match FROM (
            SELECT * FROM subscriptions WHERE name = ?1 AND ended = 0 AND position < ?2
            UNION ALL SELECT * FROM subscriptions WHERE name = ?1 AND ended > ?2 AND position < ?2
        ) WHERE subscription NOT IN (SELECT subscription FROM offers WHERE name = ?1 AND sequence = ?3)
        ORDER BY position LIMIT ?4""",
        (signal["name"], signal["position"], signal["sequence"], OTHERS_MAX + 1),
    ).fetchall()


def _repetitions(connection: sqlite3.Connection, signal: sqlite3.Row) -> Record:
    """The same signal, announced again: how often, and the latest of it."""
    where = (signal["name"], signal["sequence"])
    count = connection.execute(
        "SELECT COUNT(*) FROM unaccepted_signals INDEXED BY unaccepted_signals_by_first "
        "WHERE name = ? AND first_sequence = ?",
        where,
    ).fetchone()[0]
    rows = connection.execute(
        "SELECT * FROM unaccepted_signals INDEXED BY unaccepted_signals_by_first WHERE name = ? AND first_sequence = ? "
        "ORDER BY position DESC LIMIT ?",
        (*where, REPETITIONS_MAX),
    ).fetchall()
    return {"count": count, "latest": [refused_record(row) for row in rows]}
