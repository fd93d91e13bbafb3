"""What the first screen of the README shows works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from kapelle.processors.definitions import yaml_push
from kapelle.testing import Engine, assert_run, assert_step

README = (Path(__file__).parents[3] / "README.md").read_text()


def block(kind: str) -> str:
    """The first block of a kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_steps_and_the_workflow_of_the_first_screen_run(engine: Engine) -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block("python"), "README.md", "exec"), names)  # noqa: S102 - our own page
    run = engine.start(engine.push(yaml_push(block("yaml"))))

    engine.run_worker(names["worker"])
    assert_step(run, "fetch", "USER_FAILED")
    engine.advance(1_000)  # nobody waits for a minute on the first screen
    engine.run_worker(names["worker"])

    assert_run(run, "SUCCEEDED")
    assert_step(run, "report", "SUCCEEDED")


@pytest.mark.parametrize(("file", "command"), [("steps.py", "kapelle dev"), ("orders.yaml", "kapelle workflow push")])
def test_a_file_is_there_before_the_command_that_needs_it(file: str, command: str) -> None:
    assert README.index(f"Save this as `{file}`") < README.index(f"\n{command}")
