"""Which streams the view follows, and what it makes of each of their entries."""

from collections.abc import Iterable
from typing import Final

from kapelle.processors.routes import CANCELLATIONS, RUN_EVENTS, SIGNAL_EVENTS, TASKS, TRIGGER_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.changes import Change
from kapelle.views.projection.at import At
from kapelle.views.projection.runs import OF_RUNS, task_cancelled, task_given
from kapelle.views.projection.signals import OF_SIGNALS
from kapelle.views.projection.triggers import OF_TRIGGERS
from kapelle.views.projection.workflows import OF_WORKFLOWS

FOLLOWED: Final = (WORKFLOW_EVENTS, RUN_EVENTS, TASKS, CANCELLATIONS, SIGNAL_EVENTS, TRIGGER_EVENTS)
EVENTS: Final = {WORKFLOW_EVENTS.name: OF_WORKFLOWS, RUN_EVENTS.name: OF_RUNS}
SIGNALLED: Final = {SIGNAL_EVENTS.name: OF_SIGNALS, TRIGGER_EVENTS.name: OF_TRIGGERS}


def changes_of(entry: Entry) -> Iterable[Change]:
    """What an entry changes. One that could not be read, or that a later release wrote, changes nothing."""
    value, kind = entry.value, type(entry.value)
    events = EVENTS.get(entry.stream)
    if events is not None:
        project = events.get(kind)
        return () if project is None else project(At.of(entry), value)
    signalled = SIGNALLED.get(entry.stream)
    if signalled is not None:
        told = signalled.get(kind)
        return () if told is None else told(entry, value)
    if isinstance(value, c.Task):
        return task_given(value)
    return task_cancelled(value) if isinstance(value, c.CancelTask) else ()
