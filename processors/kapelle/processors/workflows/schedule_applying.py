"""How the events of schedules and backfills change the tables of a workflow.

The timer of a time trigger is set while a tick is ahead, that of a backfill while it has something to do (`lanes`).
"""

from msgspec.structs import replace

from kapelle.processors.messages import Message
from kapelle.processors.workflows.lanes import has_work
from kapelle.processors.workflows.processor import BACKFILL, TICK, workflows
from kapelle.processors.workflows.slots import first_position
from kapelle.processors.workflows.tables import ALL, BackfillRow, Pause, ScheduleRow, WorkflowTables
from kapelle.schemas import contracts as c

# Schedules ----------------------------------------------------------------------------------------------------------


def _timer_of(trigger_id: str, row: ScheduleRow) -> str:
    return f"{TICK}/{trigger_id}/{row.after_ms}"


def _put_schedule(state: WorkflowTables, place: tuple[str, str], row: ScheduleRow) -> None:
    _drop_schedule(state, place)
    state.schedules.put(place, row)
    if row.next_due_ms is not None:
        state.timers.set(place[0], _timer_of(place[1], row), row.next_due_ms)


def _drop_schedule(state: WorkflowTables, place: tuple[str, str]) -> None:
    before = state.schedules.get(place)
    if before is not None:
        state.timers.cancel(place[0], _timer_of(place[1], before))
        state.schedules.delete(place)


@workflows.applies(c.SchedulesArmed)
def schedules_armed(message: Message[c.SchedulesArmed], state: WorkflowTables) -> None:
    for gone in message.value.disarmed:
        _drop_schedule(state, (message.key, gone.trigger_id))
    for armed in message.value.armed:
        row = ScheduleRow(
            schedule=armed.schedule,
            catch_up=armed.catch_up,
            fuzzy_max_delay_ms=armed.fuzzy_max_delay_ms,
            after_ms=armed.after_ms,
            next_at_ms=armed.next_at_ms,
            next_due_ms=armed.next_due_ms,
        )
        _put_schedule(state, (message.key, armed.trigger_id), row)


@workflows.applies(c.ScheduleTicked)
def schedule_ticked(message: Message[c.ScheduleTicked], state: WorkflowTables) -> None:
    event, place = message.value, (message.key, message.value.trigger_id)
    row = state.schedules.get(place)
    if row is not None:
        after = replace(row, after_ms=event.after_ms, next_at_ms=event.next_at_ms, next_due_ms=event.next_due_ms)
        _put_schedule(state, place, after)


@workflows.applies(c.SchedulesPaused)
def schedules_paused(message: Message[c.SchedulesPaused], state: WorkflowTables) -> None:
    event = message.value
    state.pauses.put((message.key, event.trigger_id or ALL), Pause(event.author, event.reason, event.at_ms))


@workflows.applies(c.SchedulesResumed)
def schedules_resumed(message: Message[c.SchedulesResumed], state: WorkflowTables) -> None:
    """Resuming a workflow resumes each of its triggers."""
    trigger_id = message.value.trigger_id
    if trigger_id is not None:
        state.pauses.delete((message.key, trigger_id))
        return
    for place, _ in list(state.pauses.prefix((message.key,))):
        state.pauses.delete(place)


# Backfills ----------------------------------------------------------------------------------------------------------


def _turn_of(backfill_id: str, row: BackfillRow) -> str:
    return f"{BACKFILL}/{backfill_id}/{row.turn}"


def _put_backfill(state: WorkflowTables, place: tuple[str, str], row: BackfillRow, at_ms: int) -> None:
    key, backfill_id = place
    state.timers.cancel(key, _turn_of(backfill_id, row))
    row = replace(row, turn=row.turn + 1)
    state.backfills.put(place, row)
    if has_work(row):
        state.timers.set(key, _turn_of(backfill_id, row), at_ms)


def lane_changed(state: WorkflowTables, place: tuple[str, str], by: int, at_ms: int) -> None:
    """An instance of a backfill was launched, or has ended."""
    row = state.backfills.get(place)
    if row is not None:  # the workflow may have been deleted
        _put_backfill(state, place, replace(row, running=row.running + by), at_ms)


@workflows.applies(c.BackfillStarted)
def backfill_started(message: Message[c.BackfillStarted], state: WorkflowTables) -> None:
    """From the first slot, also if it was started before. Instances of before may still run."""
    event, place = message.value, (message.key, message.value.backfill_id)
    before = state.backfills.get(place)
    row = BackfillRow(
        author=event.author,
        schedule=event.schedule,
        from_ms=event.from_ms,
        to_ms=event.to_ms,
        run_params=event.run_params,
        concurrency=event.concurrency,
        position_ms=first_position(event),
        trigger_id=event.trigger_id,
        is_newest_first=event.is_newest_first,
        is_rerun=event.is_rerun,
        running=0 if before is None else before.running,
        turn=0 if before is None else before.turn,
    )
    _put_backfill(state, place, row, event.at_ms)


@workflows.applies(c.BackfillProgressed)
def backfill_progressed(message: Message[c.BackfillProgressed], state: WorkflowTables) -> None:
    event, place = message.value, (message.key, message.value.backfill_id)
    row = state.backfills.get(place)
    if row is not None:
        after = replace(row, position_ms=event.position_ms, is_exhausted=event.is_last)
        _put_backfill(state, place, after, event.at_ms)


@workflows.applies(c.BackfillChanged)
def backfill_changed(message: Message[c.BackfillChanged], state: WorkflowTables) -> None:
    event, place = message.value, (message.key, message.value.backfill_id)
    row = state.backfills.get(place)
    if row is not None:
        _put_backfill(state, place, replace(row, status=event.status), event.at_ms)


def forget_schedules(state: WorkflowTables, key: str) -> None:
    """The pauses and backfills of a deleted workflow go. Its schedules are disarmed by an event of their own."""
    for place, _ in list(state.pauses.prefix((key,))):
        state.pauses.delete(place)
    for place, row in list(state.backfills.prefix((key,))):
        state.timers.cancel(key, _turn_of(place[1], row))
        state.backfills.delete(place)
