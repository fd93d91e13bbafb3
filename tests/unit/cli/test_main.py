"""The command as a whole: its version, its help, and what every command has in common."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.errors import MEANINGS
from kapelle.cli.main import main
from kapelle.cli.root import COMMANDS, Commands

PROOF = "tests.proof.processors:topology"


def kapelle(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="kapelle")


def commands(found: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, by its words."""
    found = found or typer.main.get_command(cli)
    if not isinstance(found, TyperGroup):
        yield path
        return
    for name, inner in found.commands.items():
        yield from commands(inner, (*path, name))


def loaded(names: Sequence[str], program: str) -> list[str]:
    """Which of these modules a new process has when the program is done."""
    code = f"import sys\n{program}\nprint([name for name in {names!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stderr.replace("'", '"'))
    return found


def test_nothing_that_is_slow_to_load_is_loaded_before_it_is_known_which_command_it_is_for() -> None:
    slow = ("confluent_kafka", "fastapi", "httpx", "lark", "pydantic", "uvicorn", "kapelle.schemas", "kapelle.topology")

    assert loaded(slow, "import kapelle.cli.main") == []


def test_no_command_but_the_one_that_is_named_is_loaded() -> None:
    asked = "from kapelle.cli.main import main\ntry: main(['topology', '--help'])\nexcept SystemExit: pass"

    assert loaded([f"kapelle.cli.commands.{name}" for name in COMMANDS], asked) == ["kapelle.cli.commands.topology"]


@pytest.mark.parametrize("words", [["--help"], []], ids=" ".join)
def test_without_the_name_of_a_command_all_are_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)

    told = "".join(capsys.readouterr())
    assert [name for name in COMMANDS if f"\n  {name} " not in told] == []


def test_a_command_that_does_not_exist_is_refused_with_those_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["workflwo", "list"])

    assert ended.value.code == 2
    assert "Did you mean 'workflow'?" in capsys.readouterr().err


def test_the_version_is_that_of_the_package() -> None:
    result = kapelle("--version")

    assert result.stdout == f"kapelle {importlib.metadata.version('kapelle')}\n"
    assert result.exit_code == 0


def test_help_tells_every_exit_code_and_what_it_means() -> None:
    told = kapelle("--help").stdout

    assert [f"{code.value}  {meaning}" for code, meaning in MEANINGS.items() if meaning not in told] == []


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_of_every_command_gives_an_example_of_it(words: tuple[str, ...]) -> None:
    result = kapelle(*words, "--help")

    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"    kapelle {' '.join(words)}" in result.stdout


@pytest.mark.parametrize("words", [(), ("topics",), ("processors",), ("dlq",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_help(words: tuple[str, ...]) -> None:
    result = kapelle(*words)

    assert "Commands:" in result.output
    assert result.exit_code == 2


def test_the_entry_point_ends_the_process_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topology", "--app", "nonsense"])

    assert ended.value.code == 2
    assert "error: Expected --app MODULE:ATTRIBUTE" in capsys.readouterr().err


def test_a_defect_of_ours_is_a_paragraph_with_its_line() -> None:
    app = typer.Typer(cls=Commands)

    @app.command()
    def broken() -> None:
        raise ZeroDivisionError("nobody thought of this")

    @app.command()
    def other() -> None:
        """So that there are two, and the first needs its name."""

    result = CliRunner().invoke(app, ["broken"])

    assert "error: Unexpected ZeroDivisionError: nobody thought of this" in result.stderr
    assert f"{Path(__file__).name}:" in result.stderr
    assert result.exit_code == 1


def test_the_product_has_a_topology_that_can_be_shown_in_every_form() -> None:
    assert kapelle("topology").stdout.startswith("topology kapelle: ")
    assert kapelle("topology", "-o", "mermaid").stdout.startswith("flowchart LR\n")
    assert json.loads(kapelle("topology", "-o", "json").stdout)["prefix"] == "kapelle"


def test_data_goes_to_stdout_and_remarks_to_stderr() -> None:
    result = kapelle("topology", "--app", "tests.unit.cli.apps:empty", "-o", "json")

    assert json.loads(result.stdout)["processors"] == []
    assert result.stderr == "tests.unit.cli.apps:empty has no processors\n"


def test_a_topology_takes_its_prefix_and_partitions_from_the_command() -> None:
    told = json.loads(kapelle("topology", "--app", PROOF, "--prefix", "shop", "--partitions", "7", "-o", "json").stdout)

    assert (told["prefix"], told["partitions"]) == ("shop", 7)
    assert told["processors"][0]["changelog"] == "shop.counting.changelog"


def test_a_topology_may_be_an_attribute_that_is_one_already() -> None:
    told = json.loads(kapelle("topology", "--app", "tests.unit.cli.apps:fixed", "-o", "json").stdout)

    assert told["prefix"] == "fixed"


def test_the_app_may_be_given_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAPELLE_APP", "tests.unit.cli.apps:fixed")

    assert kapelle("topology").stdout.startswith("topology fixed: ")


def test_a_module_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_of_this_test.py").write_text("from tests.unit.cli.apps import fixed\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    assert kapelle("topology", "--app", "shop_of_this_test:fixed").exit_code == 0
