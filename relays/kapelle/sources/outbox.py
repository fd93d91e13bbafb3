"""Publishes the signals of an outbox in PostgreSQL: those of committed transactions, each once.

A batch is one transaction: lock rows that nobody else has, publish them, wait for the acknowledgements, delete or mark
the rows, commit. Whoever is killed in between leaves rows as they were, and the next relay publishes them under the
same ids, which the engine knows. Rows are found by being unpublished and not by a position that moves on, because
transactions are not committed in the order of their positions.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import class_row

from kapelle.processors.intake.forms import NotASignal, read
from kapelle.processors.messages import Foreign
from kapelle.processors.wiring import SIGNALS
from kapelle.relay.metrics import OUTBOX, Tally, Waits
from kapelle.relay.patience import Patience
from kapelle.relay.publication import Publisher, Sent, failure, sent
from kapelle.schemas import SchemaError
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.sources.errors import BadDsn, DatabaseAway, DatabaseRefused
from kapelle.topology.journal import JournalUnavailable

TABLE: Final = "kapelle_outbox"
BATCH: Final = 500
AGAIN_S: Final = 1.0  # between attempts while the database or the log is away
DEFAULTS: Final = {"connect_timeout": "10", "application_name": "kapelle outbox"}
REASON_CHARS_MAX: Final = 4_000

TAKE: Final = """
SELECT position, id, name, params::text AS params, payload::text AS payload,
       (extract(epoch FROM happened_at) * 1000)::bigint AS happened_at_ms
FROM kapelle_outbox WHERE published_at IS NULL AND refused IS NULL
ORDER BY position LIMIT %s FOR UPDATE SKIP LOCKED
"""
DELETE: Final = "DELETE FROM kapelle_outbox WHERE position = ANY(%s)"
MARK: Final = "UPDATE kapelle_outbox SET published_at = clock_timestamp() WHERE position = ANY(%s)"
REFUSE: Final = "UPDATE kapelle_outbox SET refused = %s WHERE position = %s"

FAILURES: Final = (NotASignal, SchemaError, JournalUnavailable)

_log = logging.getLogger("kapelle.outbox")

Stopped = Callable[[], bool]


class Counts(Waits):
    """What became of rows."""

    published: int = 0
    refused: int = 0


class Row(msgspec.Struct, frozen=True):
    """A signal that waits in the outbox."""

    position: int
    id: str
    name: str
    params: str
    payload: str
    happened_at_ms: int | None


def signal_of_row(row: Row) -> AnnounceSignal:
    """The signal of a row, held to the same rules as one that anyone publishes. Raises `NotASignal`."""
    document = {
        "name": row.name,
        "id": row.id,
        "time": row.happened_at_ms,
        "params": msgspec.Raw(row.params.encode()),
        "payload": msgspec.Raw(row.payload.encode()),
    }
    signal = read(Foreign(msgspec.json.encode(document), None, TABLE, 0, row.position), ())
    source = msgspec.json.encode({"outbox": TABLE, "position": row.position}).decode()
    return msgspec.structs.replace(signal, source=source)


class OutboxRelay:
    """Publishes what stands in one outbox. Any number may run."""

    def __init__(self, journal: Publisher, dsn: str, *, keep: bool = False, poll_s: float = 0.5) -> None:
        """Connects. Raises `BadDsn`, `DatabaseAway` or `DatabaseRefused`."""
        self.counts = Counts()
        self._tally = Tally(self.counts, OUTBOX, _log, "relayed")
        self._journal = journal
        self._dsn = dsn
        self._done = MARK if keep else DELETE
        self._poll_s = poll_s
        self._patience = Patience()
        self._connection = self._connected()
        self._checked_once()

    def run(self, stopped: Stopped, pause: Callable[[float], object] = time.sleep) -> None:
        """Relay until told to stop."""
        self._patience = Patience(stopped)
        try:
            while not stopped():
                self._tried(pause)
        finally:
            self.close()
            self._tally.log()

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        return self._tally.exposition()

    def step(self) -> int:
        """One batch. Returns how many rows it had. Raises `JournalUnavailable` after keeping what was acknowledged."""
        with self._connection.transaction(), self._connection.cursor(row_factory=class_row(Row)) as cursor:
            rows = cursor.execute(TAKE, (BATCH,)).fetchall()
            answers = [(row, sent(partial(self._sent, row), *FAILURES)) for row in rows]
            failures = [(row, failure(answer, self._patience, *FAILURES)) for row, answer in answers]
            done = [row.position for row, e in failures if e is None]
            wrong = [(row, e) for row, e in failures if isinstance(e, NotASignal | SchemaError)]
            away = next((e for _, e in failures if isinstance(e, JournalUnavailable)), None)
            if done:
                cursor.execute(self._done, (done,))
            self._refuse(cursor, wrong)
        self.counts.published += len(done)
        self.counts.refused += len(wrong)
        if away is not None:
            raise away
        return len(rows)

    def close(self) -> None:
        self._connection.close()

    def _tried(self, pause: Callable[[float], object]) -> None:
        """A batch, or a while of waiting for what is away or not there yet."""
        try:
            if self._connection.closed:
                self._connection = self._connected()
            if self.step() < BATCH:
                pause(self._poll_s)
        except (psycopg.OperationalError, psycopg.InterfaceError, DatabaseAway, JournalUnavailable) as error:
            self._tally.waits_for(error)
            if not isinstance(error, JournalUnavailable):
                self._connection.close()
            pause(AGAIN_S)
        except psycopg.ProgrammingError as error:
            raise _refusal(error) from error

    def _sent(self, row: Row) -> Sent:
        signal = signal_of_row(row)
        return self._journal.publish(SIGNALS, signal.name, signal)

    def _refuse(self, cursor: psycopg.Cursor[Row], wrong: Sequence[tuple[Row, Exception]]) -> None:
        for row, error in wrong:
            cursor.execute(REFUSE, (str(error)[:REASON_CHARS_MAX].replace("\0", ""), row.position))
            _log.error("a row is not a valid signal", extra={"fields": {"position": row.position, "reason": error}})

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        try:
            known = conninfo_to_dict(self._dsn)
        except psycopg.ProgrammingError:  # its message repeats what was given, and that may hold a password
            raise BadDsn("Expected a DSN such as postgresql://user@host/database, but it cannot be read") from None
        ours = {name: value for name, value in DEFAULTS.items() if name not in known}
        try:
            return psycopg.connect(make_conninfo(self._dsn, **ours), autocommit=True)
        except psycopg.OperationalError as error:
            raise DatabaseAway(f"Expected to connect to PostgreSQL, but {str(error).strip()}") from error

    def _checked_once(self) -> None:
        """An outbox that cannot be used is told of before anything runs."""
        try:
            self._connection.execute(f"{TAKE.partition('ORDER BY')[0]} LIMIT 0")
        except psycopg.ProgrammingError as error:
            self._connection.close()
            raise _refusal(error) from error


def _refusal(error: psycopg.Error) -> DatabaseRefused:
    reason = " ".join(str(error).split())
    return DatabaseRefused(f"The table {TABLE} of `kapelle outbox sql` is missing or not accessible: {reason}")
