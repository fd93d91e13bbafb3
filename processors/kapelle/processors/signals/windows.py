"""For how long a signal is known again, and from when on it is too late to tell.

Time is what the signals say: the latest of a partition moves it, and a wall clock never does, so a replay forgets what
the first run forgot. Ids are kept in buckets by when their signal was accepted, as long as the window each: an id is
looked up in the one of now and the one before, and what is older is forgotten at once for all names.

A signal is too late if it happened long before the latest of its own name, or no later than one of its name whose id is
forgotten: it could be that one. It is refused, which is recorded, and never silent. So signals of one name, however
old, are never too late because of another's.
"""

from typing import Final

from kapelle.processors.signals.tables import NEVER_MS, NameRow

WINDOW_MS: Final = 7 * 24 * 60 * 60 * 1000
BUCKET_MS: Final = WINDOW_MS  # shorter ones would forget sooner, and be more to look into for every signal
KEPT: Final = 2
CLOCK: Final = "clock"


def bucket_of(at_ms: int) -> int:
    """The bucket of a time."""
    return at_ms // BUCKET_MS


def kept(bucket: int) -> range:
    """The buckets that are known when time has come to this one."""
    return range(bucket - KEPT + 1, bucket + 1)


def aged(name: NameRow, bucket: int) -> NameRow:
    """What is known of a name when time has come to a bucket."""
    if bucket == name.bucket:
        return name
    before_ms, forgotten_ms = name.newest_ms, max(name.forgotten_ms, name.before_ms)
    if bucket > name.bucket + 1:
        before_ms, forgotten_ms = NEVER_MS, max(before_ms, forgotten_ms)
    return NameRow(name.sequence, bucket, NEVER_MS, before_ms, forgotten_ms)


def accepted(name: NameRow, bucket: int, sequence: int, happened_at_ms: int) -> NameRow:
    """A name that has one more signal."""
    now = aged(name, bucket)
    return NameRow(sequence, bucket, max(now.newest_ms, happened_at_ms), now.before_ms, now.forgotten_ms)


def floor_ms(name: NameRow, bucket: int) -> int:
    """What happened before this is too late for a name when time has come to a bucket."""
    now = aged(name, bucket)
    latest_ms = max(now.newest_ms, now.before_ms, now.forgotten_ms)
    return max(now.forgotten_ms + 1, kept(bucket_of(latest_ms)).start * BUCKET_MS)
