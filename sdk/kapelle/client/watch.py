"""Following an instance until it ends: which entries are new, and how long to wait before looking again."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from kapelle.client.errors import TimedOut
from kapelle.client.results import InstanceRecord, Timeline, TimelineEntry

PAUSE_MIN_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0

_encode = msgspec.json.Encoder().encode


class Watching:
    """What has been seen of an instance. Entries are counted: one may come late and stand before others."""

    def __init__(self, timeout_s: float | None) -> None:
        self.record: InstanceRecord | None = None
        self._seen: Counter[bytes] = Counter()
        self._first_run_id: int | None = None
        self._timeout_s = timeout_s
        self._until_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._pause_s = PAUSE_MIN_S

    def news(self, record: InstanceRecord, timeline: Timeline) -> Iterator[TimelineEntry]:
        """The entries that were not told yet, of the run that was the latest when this began, and those after it."""
        self.record = record
        if self._first_run_id is None:
            self._first_run_id = record.workflow_run_id
        count: Counter[bytes] = Counter()
        self._pause_s = min(self._pause_s * 1.5, PAUSE_MAX_S)
        for entry in timeline.elements:
            if (entry.workflow_run_id or 0) < self._first_run_id:
                continue
            name = _encode(entry)
            count[name] += 1
            if count[name] > self._seen[name]:
                self._seen[name] = count[name]
                self._pause_s = PAUSE_MIN_S
                yield entry

    def has_ended(self, record: InstanceRecord) -> bool:
        """Whether the instance has ended, for those who want to know no more."""
        if self.record is not None:
            self._pause_s = min(self._pause_s * 1.5, PAUSE_MAX_S)
        self.record = record
        return record.is_terminal

    @property
    def is_over(self) -> bool:
        """Whether the instance has ended."""
        return self.record is not None and self.record.is_terminal

    def pause_s(self) -> float:
        """How long to wait before the next look. Raises `TimedOut` if there is no time left."""
        if self._until_s is None:
            return self._pause_s
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            record = self.record
            what = "the instance" if record is None else f"{record.workflow_id}/{record.workflow_instance_id}"
            status = "unknown" if record is None else record.status
            raise TimedOut(f"Expected {what} to end within {self._timeout_s:g} s, but it is {status}")
        return min(self._pause_s, left_s)
