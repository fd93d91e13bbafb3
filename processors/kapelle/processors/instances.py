"""The states of instances, and which may follow which. `docs/states.md` is drawn from the table.

    CREATED       it is in the queue
    IN_PROGRESS   it is launched: its steps are the business of `runs`

A workflow counts what is queued and what runs, and its strategy trusts the counts. A change that does not exist would
make them wrong for good, so `WorkflowDraft.emit` refuses it.
"""

from collections.abc import Mapping
from typing import Final

from kapelle.schemas.contracts import InstanceStatus

I = InstanceStatus  # noqa: E741 - the table is read by columns, and the letter is the shortest column

# A new run is queued, unless the strategy stops it on arrival. A first run may also have parameters without a value.
# An instance that has ended gets new runs by restarts; those have their parameters already.
_RESTARTED: Final = frozenset({I.CREATED, I.STOPPED})

NEXT: Final[Mapping[InstanceStatus | None, frozenset[InstanceStatus]]] = {
    None: frozenset({I.CREATED, I.STOPPED, I.FAILED}),
    # In the queue it is stopped, killed (FAILED) or displaced. It cannot time out: the clock starts with the run.
    I.CREATED: frozenset({I.IN_PROGRESS, I.STOPPED, I.FAILED}),
    # Only `runs` ends an instance that is launched. A stop is a request to `runs`, which reports the end.
    I.IN_PROGRESS: frozenset({I.SUCCEEDED, I.FAILED, I.STOPPED, I.TIMED_OUT}),
    I.PAUSED: frozenset(),  # no instance gets there yet
    I.SUCCEEDED: _RESTARTED,
    I.FAILED: _RESTARTED,
    I.STOPPED: _RESTARTED,
    I.TIMED_OUT: _RESTARTED,
    I.OTHER: frozenset(),  # what a reader sees that does not know a later state; nothing is decided on it
}

# An instance that has ended; a restart may give it another run.
INSTANCE_TERMINAL: Final = NEXT[I.IN_PROGRESS]
