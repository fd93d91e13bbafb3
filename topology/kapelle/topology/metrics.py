"""What a member counts about itself. Plain integers, bumped in place: reading them never disturbs the loop."""

import msgspec


class Counters(msgspec.Struct):
    """Totals since the start, and a few present values. Times are in milliseconds."""

    cycles: int = 0
    records: int = 0
    repeats: int = 0  # deliveries of a record that was already folded
    timers: int = 0
    events: int = 0
    sent: int = 0  # records produced: events, messages to other keys by topic, dead letters
    delivered: int = 0  # messages to other keys, within the cycle
    dead_letters: int = 0
    aborts: int = 0
    renewals: int = 0
    restored_rows: int = 0
    restores: int = 0
    wipes: int = 0
    swept_rows: int = 0
    early_commits: int = 0  # cycles ended by a limit instead of by running out of input
    settles: int = 0
    cycle_ms: float = 0.0
    commit_ms: float = 0.0
    commit_ms_max: float = 0.0
    shards_active: int = 0
    shards_restoring: int = 0
    restore_rows_left: int = 0

    def snapshot(self) -> dict[str, float]:
        """All values by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}
