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
    cycle_ms_max: int = 200  # then no more records are begun...
    cascade_ms_max: int = 500  # ...and after this, what they set off takes the topics
    background_ms_max: int = 25  # then what decisions left over goes on in the next cycle
    decision_ms_max: int = 2_000  # CPU time; a decision that takes longer is given up. 0: no limit
    overlay_bytes_max: int = 32 * 1024 * 1024
    record_bytes_max: int = 1_000_000
    timers_max: int = 1_000
    sweep_rows_max: int = 1_000
    restore_rows_max: int = 20_000
    idle_wait_ms: int = 500
    patience_ms: int = 0  # between two turns of patient processors: each turn costs the others a part of a transaction
    restore_slice_ms: int = 50  # how long live partitions wait for restoring ones, a cycle
    restore_stuck_ms: int = 1_500  # a changelog not read on for so long is held by a dead member's transaction
    settle_records_max: int = 20_000  # a target lagging more than this, two full cycles, takes its commands by topic
    settle_ms_max: int = 1_000
    settle_again_ms: int = 5_000
    doubt_ms: int = 1_000  # what says that records were lost is asked again after so long, before it is believed
    advance_ms: int = 10_000  # how often the offsets of inputs that were read to their end move behind the last mark
    tombstone_ms: int = 7 * 24 * 60 * 60 * 1000  # the changelog's delete.retention.ms
    apply_failures_max: int = 5  # aborted cycles in a row that end in a stop, whatever the policy


class RecordAt(msgspec.Struct, frozen=True):
    """A record that the operator names, to be put aside undecided."""

    topic: str
    partition: int
    offset: int


class MemberSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a member behaves."""

    instance: str = "kapelle-0"
    on_bug: OnBug = OnBug.STOP
    set_aside: frozenset[RecordAt] = frozenset()  # records that become dead letters, whatever they say
    on_lost_input: OnLostInput = OnLostInput.STOP
    same_cycle: bool = True
    limits: Limits = Limits()
    framing: Framing | None = None  # how values are written; with a registry, public ones by the ids of their schemas
