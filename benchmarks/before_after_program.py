"""Folds batches of starts when told to: one line `work starts` on stdin, one line of JSON on stdout.

It is run by the interpreter of either checkout, so it uses only what both of them have.
"""

import json
import os
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any, Final

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology

STEPS: Final = 10
PUBLISHED_MAX: Final = 100  # what surely has room in the queue


TAGS: Final = ("a", "b", "c")  # that nobody limits


def step(number: int, *after: int, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    """A step that is done at once."""
    successors = {f"s{one}": "true" for one in after}
    return {"step": {"id": f"s{number}", "type": "NoOp", "transition": {"successors": successors}, "tags": list(tags)}}


WORK: Final[dict[str, list[dict[str, Any]]]] = {
    "noop": [step(0)],
    "chain": [*(step(number, number + 1) for number in range(STEPS - 1)), step(STEPS - 1)],
    "beside": [step(number) for number in range(STEPS)],
    "tagged": [*(step(number, number + 1, tags=TAGS) for number in range(STEPS - 1)), step(STEPS - 1, tags=TAGS)],
}


def definition(workflow_id: str) -> str:
    """The request that pushes a workflow."""
    properties = {"owner": "benchmark", "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 1_000}}
    return json.dumps({"properties": properties, "workflow": {"id": workflow_id, "steps": WORK[workflow_id]}})


def serve(runtime: EmbeddedRuntime) -> None:
    """Fold what stdin asks for, until it ends."""
    numbers = count(1)
    for line in sys.stdin:
        work, starts = line.split()
        left, began = int(starts), time.process_time()
        while left:
            for _ in range(min(left, PUBLISHED_MAX)):
                start = c.StartInstances("benchmark", (c.Start(f"start-{next(numbers)}"),))
                runtime.publish(WORKFLOW_COMMANDS, work, start)
            left -= min(left, PUBLISHED_MAX)
            runtime.step_until_idle()
        print(json.dumps({"cpu_s": time.process_time() - began}), flush=True)


def main(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    with tempfile.TemporaryDirectory(prefix="before-after-") as directory:
        runtime = EmbeddedRuntime(topology("before-after", 4), Path(directory) / "log")
        try:
            for work in WORK:
                runtime.publish(WORKFLOW_COMMANDS, work, c.PushVersion(f"push-{work}", "benchmark", definition(work)))
            runtime.step_until_idle()
            serve(runtime)
        finally:
            runtime.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
