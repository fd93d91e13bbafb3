"""The processor `permits`: who may run, of all that need a permit of one limited thing."""

from typing import Final

from kapelle.processors.decisions import Done, OnDraft, Request, Rules, repeated
from kapelle.processors.draft import Draft
from kapelle.processors.permits.tables import PermitTables
from kapelle.processors.processor import Processor
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_EVENTS, PERMIT_INTERNAL, RUN_INTERNAL

permits: Final = Processor(
    "permits",
    tables=PermitTables,
    inputs=[PERMIT_COMMANDS, PERMIT_INTERNAL],
    events=PERMIT_EVENTS,
    outputs=[RUN_INTERNAL],
)


class PermitDraft(Draft[PermitTables]):
    """A decision about one limited thing."""


def _earlier(request: Request, draft: PermitDraft) -> Done | None:
    """The outcome of a request that was carried out before."""
    return None if draft.state.answers.get((draft.key, request.request_id)) is None else repeated()


on_draft: Final = OnDraft(permits, PermitDraft, Rules(lambda _: "", _earlier))
