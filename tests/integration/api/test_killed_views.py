"""A view whose process is killed while it folds goes on as if nothing had happened."""

import random
import subprocess
import sys
from pathlib import Path

from kapelle.processors.wiring import RUN_COMMANDS, TASKS, WORKFLOW_COMMANDS, run_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.page import topology
from kapelle.views import Views
from tests.integration.api.folding_process import PARTITIONS
from tests.integration.api.places import definition, step, written
from tests.unit.views.histories import dump

INSTANCES = 150
BATCH = 15
KILLS = 12


def make_history(directory: Path) -> None:
    """A log with some thousand events: instances that ended well, badly, or not yet."""
    with EmbeddedRuntime(topology(partitions=PARTITIONS), directory) as runtime:
        for name in ("one", "two"):
            pushed = definition(name, step("a", "NoOp", "b"), step("b", "python"), run_strategy="PARALLEL")
            runtime.publish(WORKFLOW_COMMANDS, name, c.PushVersion(f"push-{name}", "ann", written(pushed)))
        for number in range(INSTANCES):
            start = c.StartInstances("ann", (c.Start(f"start-{number}"),))
            runtime.publish(WORKFLOW_COMMANDS, ("one", "two")[number % 2], start)
        runtime.step_until_idle()
        codec = Codec(runtime.topology.catalog())
        tasks = [
            codec.decode(record.value or b"") for number in range(PARTITIONS) for record in runtime.read(TASKS, number)
        ]
        for count, task in enumerate(tasks):
            assert isinstance(task, c.Task)
            report = (c.Report.SUCCEEDED, c.Report.FATAL_ERROR, c.Report.STARTED)[count % 3]
            key = run_key(task.workflow_id, task.instance_id)
            runtime.publish(RUN_COMMANDS, key, c.ReportTask(task.token, task.step_id, "w", report))
        runtime.step_until_idle()


def killed_after(batches: int, log: Path | str, views: Path) -> bool:
    """Fold in a process of its own, and kill it after so many batches. Whether it came to the end before that."""
    words = [str(log), str(views), str(BATCH), str(batches + 1)]
    command = [sys.executable, "-m", "tests.integration.api.folding_process", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "it was asked for as a pipe"
        for _ in range(batches):
            if not process.stdout.readline():
                return process.wait(30) == 0
        process.kill()
        process.stdout.read()
    return False


def test_a_view_that_is_killed_again_and_again_equals_one_that_was_made_at_once(tmp_path: Path) -> None:
    log, directory, chance = tmp_path / "log", tmp_path / "views", random.Random(6)
    make_history(log)

    kills = [killed_after(chance.randrange(1, 4), log, directory) for _ in range(KILLS)]
    with EmbeddedRuntime(topology(partitions=PARTITIONS), log) as runtime:
        journal = EmbeddedJournal(runtime)
        survivor, fresh = Views(journal, directory), Views(journal)
        before = sum(survivor.database.offsets().values())
        for views in (survivor, fresh):
            while views.folding.step():
                pass
        found, expected, ends = dump(survivor.database), dump(fresh.database), sum(fresh.watermark.values())
        survivor.close()

    assert kills == [False] * KILLS
    assert 0 < before < ends
    assert found == expected
