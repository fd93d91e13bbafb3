"""The streams that the view follows, and the changes that their entries make."""

from typing import Final

from kapelle.processors.runs.timeline import entry_of
from kapelle.processors.wiring import (
    CANCELLATIONS,
    PERMIT_EVENTS,
    RUN_EVENTS,
    SIGNAL_EVENTS,
    TASKS,
    TRIGGER_EVENTS,
    WORKFLOW_EVENTS,
)
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.projection.at import At, tell
from kapelle.views.projection.permits import OF_PERMITS
from kapelle.views.projection.runs import OF_RUNS, task_cancelled, task_given
from kapelle.views.projection.signals import OF_SIGNALS
from kapelle.views.projection.triggers import OF_TRIGGERS
from kapelle.views.projection.workflows import OF_WORKFLOWS
from kapelle.views.rows import Cells, Rows

FOLLOWED: Final = (WORKFLOW_EVENTS, RUN_EVENTS, TASKS, CANCELLATIONS, SIGNAL_EVENTS, TRIGGER_EVENTS, PERMIT_EVENTS)
EVENTS: Final = {WORKFLOW_EVENTS.name: OF_WORKFLOWS, RUN_EVENTS.name: OF_RUNS}
# Events that belong to no workflow and no instance: their keys are read by those who project them.
OTHERS: Final = {SIGNAL_EVENTS.name: OF_SIGNALS, TRIGGER_EVENTS.name: OF_TRIGGERS, PERMIT_EVENTS.name: OF_PERMITS}

KEY_CHARS_MAX: Final = 256


def project(rows: Rows, entry: Entry) -> None:
    """Change rows as an entry says. One that could not be read is listed, and changes nothing else."""
    value, kind = entry.value, type(entry.value)
    if value is None:
        cells: Cells = {"key": entry.key[:KEY_CHARS_MAX], "reason": entry.problem, "at_ms": entry.at_ms}
        rows.put("unreadable", (entry.stream, entry.partition, entry.offset), cells)
        return
    events = EVENTS.get(entry.stream)
    if events is not None:
        change = events.get(kind)
        if change is not None:
            at = At.of(entry)
            change(rows, at, value)
            timeline_entry = entry_of(value)
            if timeline_entry is not None:
                tell(rows, at, timeline_entry)
        return
    others = OTHERS.get(entry.stream)
    if others is not None:
        project_other = others.get(kind)
        if project_other is not None:
            project_other(rows, entry, value)
    elif isinstance(value, c.Task):
        task_given(rows, value)
    elif isinstance(value, c.CancelTask):
        task_cancelled(rows, value)
