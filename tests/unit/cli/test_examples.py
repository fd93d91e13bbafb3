"""Every definition among the examples can be pushed as it stands."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from tests.tidy.files import REPOSITORY

DEFINITIONS = sorted(path for ending in ("json", "yaml") for path in (REPOSITORY / "examples").glob(f"*/*.{ending}"))


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_definition_can_be_pushed(path: Path) -> None:
    done = CliRunner().invoke(cli, ["workflow", "validate", str(path)], prog_name="kapelle")

    assert done.exit_code == 0, done.output
