"""The limits of a member: every queue, batch and loop has one."""

from enum import StrEnum

import msgspec

from kapelle.schemas import Framing


class OnBug(StrEnum):
    """What to do when a processor's own code raises."""

    STOP = "stop"  # the safe default: nothing is lost, somebody must look
    DEAD_LETTER = "dead-letter"  # put the record aside, with the reason, and go on


class OnLostInput(StrEnum):
    """What to do when input was deleted before it was read."""

    STOP = "stop"  # the safe default: somebody may be able to bring it back
    SKIP = "skip"  # write a dead letter about what was lost, and go on behind it


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one cycle may take on before it must commit."""

    records_max: int = 10_000
    folds_max: int = 100_000  # timers and commands delivered within the cycle
    cycle_ms_max: int = 200  # after this, a cycle begins no more records
    cascade_ms_max: int = 500  # after this, messages take their topics instead of direct delivery
    background_ms_max: int = 25  # after this, background timers continue in the next cycle
    alone_ms_max: int = 100  # the same, if no other work has needed the member for a quarter of a second
    decision_ms_max: int = 2_000  # CPU time; a decision that takes longer is given up. 0: no limit
    overlay_bytes_max: int = 32 * 1024 * 1024
    record_bytes_max: int = 1_000_000
    timers_max: int = 1_000
    sweep_rows_max: int = 1_000
    restore_rows_max: int = 20_000
    idle_wait_ms: int = 500
    patience_ms: int = 0  # between two turns of publishers: each turn costs the engine a part of a transaction
    restore_slice_ms: int = 50  # per cycle: how long folding partitions wait for restoring ones
    restore_stuck_ms: int = (
        1_500  # without progress for this time, a changelog is blocked by a dead member's transaction
    )
    settle_records_max: int = (
        20_000  # a target with more lag than this (two full cycles) gets its commands through its topic
    )
    settle_ms_max: int = 1_000
    settle_again_ms: int = 5_000
    doubt_ms: int = 1_000  # a sign of lost records is checked again after this time
    advance_ms: int = 10_000  # how often the offsets of fully read inputs move behind the last transaction marker
    tombstone_ms: int = 7 * 24 * 60 * 60 * 1000  # the changelog's delete.retention.ms
    apply_failures_max: int = 5  # the process stops after this many aborted cycles in a row, whatever the policy


class RecordAt(msgspec.Struct, frozen=True):
    """A record that the operator names, to be put aside undecided."""

    topic: str
    partition: int
    offset: int


class MemberSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a member behaves."""

    instance: str = "kapelle-0"
    on_bug: OnBug = OnBug.STOP
    set_aside: frozenset[RecordAt] = frozenset()  # records that become dead letters undecided
    on_lost_input: OnLostInput = OnLostInput.STOP
    same_cycle: bool = True
    limits: Limits = Limits()
    framing: Framing | None = None  # how values are written; with a registry, public ones by the ids of their schemas
