"""Rules on the counts of a composite step: how many children may be launched, and whether the step is over.

`decide` asks these questions and `apply` keeps the counts. Both do so by the functions here, so they cannot differ.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kapelle.processors.runs.tables import ChildRow, FanRow
from kapelle.schemas.contracts import ChildKind, InstanceStatus

IN_PROGRESS: Final = InstanceStatus.IN_PROGRESS
SUCCEEDED: Final = InstanceStatus.SUCCEEDED
LAUNCHED_MAX: Final = 100  # children, of one decision


def room(fan: FanRow) -> int:
    """How many children may be launched now.

    A failed child stops launching. It counts until it is run again, so a restart of it makes launching go on.
    """
    if fan.ending is not None or fan.failed or fan.next > fan.total:
        return 0
    if fan.window == 0:
        return LAUNCHED_MAX
    # In a strict order the window begins at the oldest child that runs, whatever has ended behind it.
    taken = fan.next - fan.oldest if fan.is_strict else fan.running
    return min(max(0, fan.window - taken), LAUNCHED_MAX)


def is_over(fan: FanRow) -> bool:
    """Whether no child runs and none will be launched: the step ends."""
    return fan.running == 0 and (fan.ending is not None or fan.failed > 0 or fan.next > fan.total)


def is_kept(fan: FanRow, child: ChildRow | None) -> bool:
    """Whether a child is not launched again: it has succeeded, or somebody has restarted it in this run of the step."""
    if child is None:
        return False
    return child.fan_run >= fan.counted_since or (child.status is SUCCEEDED and child.fan_run >= fan.kept_since)


def belongs(fan: FanRow | None, number: int, child: ChildRow | None) -> bool:
    """Whether a child is one that the step has now, and not one that an earlier run or turn has left.

    The present child of a subworkflow is known by its key, which a new turn takes away.
    """
    if fan is None or child is None:
        return False
    if fan.kind is ChildKind.SUBWORKFLOW:
        return True
    if fan.is_discarded:
        return False
    return number < fan.next if fan.kind is ChildKind.WHILE else child.fan_run >= fan.kept_since


def next_run_id(fan: FanRow, child: ChildRow | None) -> int:
    """The number of the next run of a child. Runs of one child are counted up, but may skip numbers."""
    # A child that was restarted by itself may have had more runs than its step has had attempts.
    return fan.fan_run if child is None else max(fan.fan_run, child.run_id + 1)


def with_launched(fan: FanRow, numbers: Sequence[int], *, next_number: int) -> FanRow:
    """The counts after children were launched in order, or after one was run again in its place.

    The latter is not the oldest, however low its number is: a strict order neither waits for it, nor has to look at all
    numbers behind it when it ends.
    """
    is_in_order, none_runs = next_number > fan.next, fan.oldest >= fan.next
    return replace(
        fan,
        running=fan.running + len(numbers),
        next=max(fan.next, next_number),
        oldest=min(numbers, default=next_number) if is_in_order and none_runs else fan.oldest,
    )


def with_ended(fan: FanRow, status: InstanceStatus, *, oldest: int) -> FanRow:
    """The counts after a child has ended."""
    return replace(
        fan,
        running=fan.running - 1,
        oldest=oldest,
        failed=fan.failed + (status is InstanceStatus.FAILED),
        timed_out=fan.timed_out + (status is InstanceStatus.TIMED_OUT),
        stopped=fan.stopped + (status is InstanceStatus.STOPPED),
    )


def without(fan: FanRow, child: ChildRow) -> FanRow:
    """The counts before a child is run again that has ended and was counted."""
    # Its end was not counted in this attempt.
    if child.fan_run < fan.counted_since:
        return fan
    return replace(
        fan,
        failed=fan.failed - (child.status is InstanceStatus.FAILED),
        timed_out=fan.timed_out - (child.status is InstanceStatus.TIMED_OUT),
        stopped=fan.stopped - (child.status is InstanceStatus.STOPPED),
    )
