"""The processor `runs`: the life of every instance, from its first step to its last."""

from typing import Final

from kapelle.processors.decisions import LATER, Done, OnDraft, Request, Rules, repeated
from kapelle.processors.draft import Draft
from kapelle.processors.processor import Processor
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import Runs
from kapelle.processors.wiring import (
    CANCELLATIONS,
    PERMIT_INTERNAL,
    RUN_COMMANDS,
    RUN_EVENTS,
    RUN_INTERNAL,
    SIGNAL_INTERNAL,
    TASKS,
    WORKFLOW_INTERNAL,
    ids_of,
)
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RestartPolicy

runs: Final = Processor(
    "runs",
    tables=Runs,
    inputs=[RUN_COMMANDS, RUN_INTERNAL],
    events=RUN_EVENTS,
    outputs=[RUN_INTERNAL, WORKFLOW_INTERNAL, SIGNAL_INTERNAL, PERMIT_INTERNAL, TASKS, CANCELLATIONS],
)


class RunDraft(Draft[Runs]):
    """A decision about a run."""


def _earlier(request: Request, draft: RunDraft) -> Done | None:
    """The outcome of a request that was carried out before. `workflows` knows that of a restart, and is asked."""
    answer = draft.state.answers.get((draft.key, request.request_id))
    if answer is None or answer.is_pending:
        return None
    workflow_id, instance_id = ids_of(draft.key)
    if answer.is_restart:
        again = Restart(RestartPolicy.RESTART_FROM_BEGINNING).json()  # it is known by its id: nobody looks at the rest
        draft.send(
            WORKFLOW_INTERNAL,
            workflow_id,
            c.QueueRun(request_id=request.request_id, author=request.author, instance_id=instance_id, restart=again),
        )
        return LATER
    return repeated(instance_id=instance_id, run_id=answer.run_id)


on_draft: Final = OnDraft(runs, RunDraft, Rules(lambda key: ids_of(key)[0], _earlier))
