"""What a worker of the proof says of a task, and when. The token alone decides, so all workers would do the same.

| share | behaviour |
|---|---|
| most | done in 10 to 150 ms |
| 4 % | an error, which another attempt mends |
| 3 % | silent for longer than the lease, and then an answer that nobody waits for any more |
| 1 % | longer than the lease, but with heartbeats |

A step that is doomed fails for good. Every success says whose it is: the attempt's token, as an output parameter.
"""

import json
import random
from typing import Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report
from tests.proof.engine.workload import DOOMED

DOOMED_STEP: Final = "load"
ERRORS, SILENT, LONG = 0.04, 0.03, 0.01
LONG_LEASES: Final = 1.5


class Word(msgspec.Struct, frozen=True):
    """What is said of a task, so long after it was taken."""

    after_ms: int
    report: Report
    outputs: str | None = None

    def of(self, task: c.Task, worker: str) -> c.ReportTask:
        return c.ReportTask(task.token, task.step_id, worker, self.report, "", self.outputs)


STARTED: Final = Word(0, Report.STARTED)


def words_of(task: c.Task) -> list[Word]:
    """What follows upon STARTED."""
    chance = random.Random(task.token)
    soon_ms, draw = chance.randint(10, 150), chance.random()
    if task.step_id == DOOMED_STEP and json.loads(task.params)["mood"] == DOOMED:
        return [Word(soon_ms, Report.FATAL_ERROR)]
    if draw < ERRORS:
        return [Word(soon_ms, Report.USER_ERROR)]
    if draw < ERRORS + SILENT:
        return [_done(task, task.lease_ms + soon_ms)]
    if draw < ERRORS + SILENT + LONG:
        whole_ms, beat_ms = int(task.lease_ms * LONG_LEASES), task.lease_ms // 3
        return [*(Word(at, Report.HEARTBEAT) for at in range(beat_ms, whole_ms, beat_ms)), _done(task, whole_ms)]
    return [_done(task, soon_ms)]


def _done(task: c.Task, after_ms: int) -> Word:
    return Word(after_ms, Report.SUCCEEDED, json.dumps({"by": {"type": "STRING", "value": task.token}}))
