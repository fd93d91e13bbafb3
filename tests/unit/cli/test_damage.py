"""Commands on damaged directories: refused with a code and the way out, and never called a defect."""

import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.cli.damaged_logs import damage_told, record
from kapelle.cli.errors import DataDamaged, ExitCode
from kapelle.cli.failures import exit_code, paragraph
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import DirectoryTaken, EmbeddedRuntime, LogDamaged, LogReplaced
from kapelle.topology.embedded.letters import EmbeddedLetters
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.letters import NotRedrivable
from kapelle.topology.page import topology
from kapelle.topology.salvage import salvage
from kapelle.topology.tables import Batch, Memory, RocksStore, StoreCorrupt
from kapelle.views import Views
from tests.unit.embedded.damages import flip, middle, newest, wal

TOPOLOGY = topology()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of `kapelle dev`, with its view: some writes are in files with rows, others are not."""
    data = tmp_path_factory.mktemp("dev") / "data"
    for life in range(2):
        with EmbeddedRuntime(TOPOLOGY, data / "log") as runtime:
            for number in range(5):
                command = c.DeactivateWorkflow(f"request-{life}-{number}", "ann")
                runtime.publish(WORKFLOW_COMMANDS, f"flow-{number}", command)
                runtime.step_until_idle()
            with Views(EmbeddedJournal(runtime), data / "views") as views:
                assert views.catch_up()
    return data


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "data")
    return tmp_path / "data"


def verified(data: Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["verify", "--data", str(data)], prog_name="kapelle")
    return done.exit_code, " ".join(done.stderr.split())


def test_a_sound_directory_is_right(data: Path) -> None:
    assert verified(data)[0] == ExitCode.OK


def test_verify_finds_a_damaged_block_that_nobody_has_read(data: Path) -> None:
    for file in (data / "log" / "rows").glob("*.sst"):
        flip(file, 200)

    code, said = verified(data)

    assert code == ExitCode.PRECONDITION
    assert "block checksum mismatch" in said
    assert f"kapelle dev --data {data} --salvage" in said


def test_verify_finds_damage_in_rows_that_no_table_and_no_history_needs(data: Path) -> None:
    log = data / "log"
    store, batch = RocksStore(log, Memory()), Batch()
    batch.update({b"\xfe%03d" % number: random.Random(number).randbytes(1_000) for number in range(50)})
    store.write(batch)
    store._rocks.flush()
    store.close()
    assert verified(data)[0] == ExitCode.OK
    file = newest(log, "*.sst")
    flip(file, middle(file))

    code, said = verified(data)

    assert (code, "block checksum mismatch" in said) == (ExitCode.PRECONDITION, True)


def test_verify_refuses_what_the_server_refuses(data: Path) -> None:
    for file in (data / "log" / "rows").glob("*.log"):
        file.unlink()
    (data / "log" / "acknowledged").unlink()

    code, said = verified(data)

    assert code == ExitCode.PRECONDITION
    assert "acknowledged" in said


def test_verify_refuses_another_log_beside_a_view(data: Path, tmp_path: Path) -> None:
    with EmbeddedRuntime(TOPOLOGY, tmp_path / "other", clock=lambda: 1) as runtime:
        runtime.step_until_idle()
    shutil.rmtree(data / "log")
    shutil.copytree(tmp_path / "other", data / "log")

    code, said = verified(data)

    assert code == ExitCode.PRECONDITION
    assert "has read the log" in said


def test_a_letter_tells_what_was_given_up_and_cannot_be_published_again(data: Path) -> None:
    wal(data / "log").unlink(missing_ok=True)
    flip(data / "log" / "acknowledged", 0)
    salvaged = salvage(TOPOLOGY, data / "log")
    assert salvaged is not None
    with EmbeddedRuntime(TOPOLOGY, data / "log") as runtime:
        runtime.start()
        record(runtime, salvaged)
        letters = EmbeddedLetters(runtime)

        [letter] = letters.last(10)
        assert letter["processor"] == "salvage"
        assert "the log was salvaged" in letter["reason"]
        with pytest.raises(NotRedrivable, match="it holds none"):
            letters.redrive(letter["offset"])


def test_a_damaged_file_that_is_met_while_running_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataDamaged, match=r"block checksum mismatch.*--salvage"), damage_told(tmp_path):
        raise StoreCorrupt(tmp_path / "log", "Corruption: block checksum mismatch in 000012.sst")


@pytest.mark.parametrize(
    "error",
    [LogDamaged("less"), LogReplaced("another"), DirectoryTaken(Path("data")), DataDamaged("data", "Corruption")],
    ids=lambda error: type(error).__name__,
)
def test_damage_is_for_the_operator_to_mend(error: Exception) -> None:
    assert exit_code(error) is ExitCode.PRECONDITION
    assert paragraph(error) == str(error)


def test_a_view_that_cannot_be_used_is_no_defect() -> None:
    said = paragraph(sqlite3.OperationalError("database or disk is full"))

    assert "database or disk is full" in said
    assert "delete its directory" in said
    assert "defect" not in said
