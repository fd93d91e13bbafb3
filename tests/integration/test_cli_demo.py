"""The demo does what it says, in under a minute."""

import re
import subprocess
import sys
import time

from tests.integration.ways_in import environment
from tests.tidy.files import REPOSITORY


def test_the_demo_shows_a_branch_a_retry_a_failure_and_a_restart_in_under_a_minute() -> None:
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo.demo"],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began_s < 60
    timeline = done.stdout.split("$ kapelle run timeline demo 1\n")[1].split("$ kapelle run describe demo 1\n")[0]
    told = [" ".join(line.split()[1:]) for line in timeline.splitlines() if re.match(r"\d\d:\d\d", line)]
    for expected in (
        "fetch USER_FAILED the export of 2026-07-01 is not there yet",
        "fetch #2 SUCCEEDED",
        "publish FATALLY_FAILED nobody has approved these 1193 rows",
        "· FAILED",
        "publish SUCCEEDED",
        "· SUCCEEDED",
    ):
        assert any(line.startswith(expected) for line in told), f"Expected {expected!r} in\n{timeline}"
