"""The lane of a backfill: when it may start slots, and when it has completed. Its timer is set exactly then."""

from typing import Final

from kapelle.processors.workflows.tables import BackfillRow
from kapelle.schemas.contracts import BackfillStatus

ENDED: Final = (BackfillStatus.CANCELLED, BackfillStatus.COMPLETED)


def starts_slots(row: BackfillRow) -> bool:
    """Whether slots are left and there is room for another instance."""
    return row.status is BackfillStatus.RUNNING and not row.is_exhausted and row.running < row.concurrency


def completes(row: BackfillRow) -> bool:
    """Whether all slots are decided on, and all instances have ended."""
    return row.status not in ENDED and row.is_exhausted and not row.running


def has_work(row: BackfillRow) -> bool:
    """Whether its timer is set."""
    return starts_slots(row) or completes(row)
