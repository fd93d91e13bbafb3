"""Following an instance until it ends: its timeline, and how far the trees below its steps are."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kapelle.cli.text.children import are_all_there, is_composite, progress_text

if TYPE_CHECKING:
    from kapelle.client import Client, InstanceRecord, TimelineEntry

PROGRESS: Final = "PROGRESS"  # the type of an entry that tells of children
SETTLE_S: Final = 2.0  # after the end of the instance: the view may learn of its iterations a bit later
PAUSE_S: Final = 0.05


def follow(
    client: "Client", at: tuple[str, int], timeout_s: float | None, show: "Callable[[TimelineEntry], None]"
) -> "InstanceRecord":
    """Show what is new of an instance, again and again, until it has ended. Returns its latest run."""
    from kapelle.client.watch import Watching  # noqa: PLC0415 - slow to load, and only some commands need it

    watching, children = Watching(timeout_s), Children(client, at)
    while True:
        record = client.instances.get(*at)  # before the timeline: so when it has ended, the timeline has all of it
        for entry in watching.news(record, client.instances.timeline(*at)):
            children.are_there = children.are_there or entry.children is not None
            show(entry)
        for entry in children.news(until_s=time.monotonic() + SETTLE_S if watching.is_over else 0.0):
            show(entry)
        if watching.is_over:
            return record
        time.sleep(watching.pause_s())


class Children:
    """What was shown of the children of an instance. Nothing is asked of the server before there are any."""

    def __init__(self, client: "Client", at: tuple[str, int]) -> None:
        self.are_there = False
        self._client = client
        self._at = at
        self._shown: dict[str, str] = {}

    def news(self, until_s: float) -> "Iterator[TimelineEntry]":
        """An entry for each step below which something has changed. With time left, the end of all is waited for."""
        from kapelle.client import TimelineEntry  # noqa: PLC0415 - the same

        if not self.are_there:
            return
        steps = self._client.steps.list(*self._at)
        while not all(are_all_there(step) for step in steps) and time.monotonic() < until_s:
            time.sleep(PAUSE_S)
            steps = self._client.steps.list(*self._at)
        for step in steps:
            text = progress_text(step) if is_composite(step) else ""
            if text != self._shown.get(step.step_id, ""):
                self._shown[step.step_id] = text
                now_ms = time.time_ns() // 1_000_000
                yield TimelineEntry(timestamp=now_ms, type=PROGRESS, step_id=step.step_id, message=text)
