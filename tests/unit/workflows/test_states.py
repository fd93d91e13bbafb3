"""The status of an instance changes only as the table allows; anything else raises before it is written."""

import pytest

from kapelle.processors.errors import WrongTransition
from kapelle.processors.instances import INSTANCE_TERMINAL, NEXT
from kapelle.processors.workflows import workflows
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.unit.workflows.world import KEY, NOW_MS, World

I = InstanceStatus  # noqa: E741 - as in the table


def launched() -> WorkflowDraft:
    """A decision about a workflow whose first instance is launched."""
    world = World()
    world.push()
    world.start("a")
    return WorkflowDraft(workflows, KEY, world.state.reader)


def ended(status: InstanceStatus) -> c.InstanceEnded:
    return c.InstanceEnded(KEY, 1, 1, status, was_launched=True, reason="", at_ms=NOW_MS)


@pytest.mark.parametrize("status", [I.CREATED, I.IN_PROGRESS, I.PAUSED, I.OTHER])
def test_a_change_that_the_table_does_not_allow_raises_and_changes_nothing(status: InstanceStatus) -> None:
    draft = launched()

    with pytest.raises(WrongTransition, match=f"follows IN_PROGRESS for etl/1, but found {status}"):
        draft.emit(ended(status))

    assert draft.effects == []


def test_an_instance_that_has_ended_is_not_launched_again_without_a_restart() -> None:
    draft = launched()
    draft.emit(ended(I.SUCCEEDED))

    with pytest.raises(WrongTransition, match="follows SUCCEEDED"):
        draft.emit(c.InstanceLaunched(KEY, 1, 1, NOW_MS))


def test_the_table_has_a_row_for_every_status() -> None:
    assert set(NEXT) == {None, *InstanceStatus}


def test_only_a_restart_follows_the_end_of_an_instance() -> None:
    assert {status for status, after in NEXT.items() if after == {I.CREATED, I.STOPPED}} == INSTANCE_TERMINAL
    assert NEXT[I.IN_PROGRESS] == INSTANCE_TERMINAL
