"""Every example of docs/workers.md runs, one after the other, as a reader would try them."""

import json
import re
from pathlib import Path
from typing import Any

from kapelle.worker.errors import NonRetryable, PlatformFailure, Retryable
from kapelle.worker.execution import KINDS
from kapelle.worker.outputs import OUTPUT_BYTES_MAX
from kapelle.worker.runner import WorkerSettings

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "workers.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"^```(python|json)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_runs() -> None:
    names: dict[str, Any] = {"__name__": "example"}

    for language, text in BLOCKS.findall(TEXT):
        if language == "json":
            names["definition"] = json.loads(text)
        else:
            exec(compile(text, "docs/workers.md", "exec"), names)  # noqa: S102 - the project's own page
    names["over_http"].close()
    names["over_kafka"].close()

    assert names["run"].status == "SUCCEEDED"


def test_the_table_of_errors_says_what_the_code_does() -> None:
    for kind in (Retryable, NonRetryable, PlatformFailure):
        (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{kind.__name__}`")]

        assert f"| {KINDS[kind]} |" in row


def test_limits_and_defaults_are_those_of_the_code() -> None:
    assert f"{OUTPUT_BYTES_MAX:,} bytes" in TEXT
    assert WorkerSettings().drain_timeout_s == 30
