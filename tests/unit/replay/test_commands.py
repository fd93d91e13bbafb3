"""`kapelle replay` and `kapelle verify` on the directory of a `kapelle dev`, and on a file."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.tables import Runs
from kapelle.processors.wiring import SIGNAL_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.testing.clock import VirtualClock
from kapelle.testing.definitions import definition_text
from kapelle.topology.build import partition_of
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology
from kapelle.topology.tables import Batch, Memory, RocksStore, ShardState

GIVEN = ("KAPELLE_APP", "KAPELLE_BOOTSTRAP_SERVERS", "KAPELLE_REGISTRY")
TOPOLOGY = topology()
FLOW = {
    "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
    "workflow": {
        "id": "etl",
        "steps": [{"step": {"id": "wait", "type": "shell"}}],
        "signal_triggers": [{"definitions": {"a": {"join_keys": ["day"]}, "b": {"join_keys": ["day"]}}}],
    },
}
FIRST, SECOND = "2023-11-14T22:13:20Z", "2023-11-14T22:13:21Z"  # one and two starts


def kapelle(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [str(word) for word in words], env=dict.fromkeys(GIVEN), prog_name="kapelle")
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow, a start, a second later another one and a signal."""
    directory = tmp_path_factory.mktemp("replay") / "data"
    clock = VirtualClock()
    with EmbeddedRuntime(TOPOLOGY, directory / "log", clock=clock) as runtime:
        runtime.publish(WORKFLOW_COMMANDS, "etl", c.PushVersion("p1", "ann", definition_text(FLOW)))
        runtime.publish(WORKFLOW_COMMANDS, "etl", c.StartInstances("ann", (c.Start("s1"),)))
        runtime.step_until_idle()
        clock.advance(1_000)
        runtime.publish(WORKFLOW_COMMANDS, "etl", c.StartInstances("ann", (c.Start("s2"),)))
        runtime.publish(SIGNAL_INTERNAL, "a", c.AnnounceSignal("a", "id-1", '{"day": "x"}'))
        runtime.step_until_idle()
    return directory


@pytest.fixture
def damaged(data: Path, tmp_path: Path) -> Path:
    """A copy of the directory with one row changed."""
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    store = RocksStore(copy / "log", Memory())
    partition = partition_of("etl", 12)
    state = ShardState(TOPOLOGY.processors["workflows"], partition, store)
    [(key, value)] = [row for row in state.encoded() if row[0].startswith(b"counts\0etl")]
    batch = Batch()
    batch.put(state.prefix + key, value[:-1] + bytes((value[-1] + 1,)))
    store.write(batch)
    store.close()
    return copy


def rows(moment: str, *words: str, data: Path) -> list[dict[str, Any]]:
    told = json.loads(kapelle("replay", "as-of", moment, *words, "--data", data, "-o", "json").stdout)
    found: list[dict[str, Any]] = told["rows"]
    return found


def test_a_workflow_is_shown_as_it_was(data: Path) -> None:
    [before] = [row for row in rows(FIRST, "workflow", "etl", data=data) if row["table"] == "counts"]
    [after] = [row for row in rows("end", "workflow", "etl", data=data) if row["table"] == "counts"]

    assert (before["row"]["latest_instance_id"], after["row"]["latest_instance_id"]) == (1, 2)
    assert rows("2020-01-01", "workflow", "etl", data=data) == []


def test_a_queue_is_shown_as_it_was(data: Path) -> None:
    assert rows(FIRST, "queue", "etl", data=data) == []
    [queued] = rows(SECOND, "queue", "etl", data=data)
    assert (queued["table"], queued["key"]) == ("queue", ["etl", 2, 1])


def test_an_instance_is_shown_with_its_steps(data: Path) -> None:
    found = rows("end", "instance", "etl", "1", data=data)

    assert {row["table"] for row in found} >= {"instances", "runs", "progress", "steps"}
    [step] = [row for row in found if row["table"] == "steps"]
    assert step["key"] == ["etl/1", "wait"]


def test_the_join_table_of_a_trigger_is_shown(data: Path) -> None:
    [armed] = rows("end", "table", "workflows", "armed", data=data)
    trigger = armed["key"][1]

    found = rows("end", "trigger", "etl", trigger, data=data)

    assert [row["table"] for row in found] == ["triggers", "waiting"]
    assert found[1]["row"]["first"]["a"]["signal_id"] == "id-1"
    assert [row["table"] for row in rows(FIRST, "trigger", "etl", trigger, data=data)] == ["triggers"]


def test_a_signal_is_shown_with_who_wants_to_hear_of_it(data: Path) -> None:
    found = {row["table"] for row in rows("end", "signal", "a", data=data)}

    assert found >= {"names", "signals", "subscriptions"}


def test_rows_are_a_table_for_people_and_the_rest_is_on_stderr(data: Path) -> None:
    told = kapelle("replay", "as-of", "end", "queue", "etl", "--data", data)

    assert re.match(r'TABLE +KEY +ROW\nqueue +\["etl",2,1\] +\{', told.stdout)
    assert "1 row from" in told.stderr
    assert re.search(r"workflows-\d+: \d+ events up to offset \d+, the last of 2023-11-1", told.stderr)


def test_what_has_changed_between_two_moments_is_told_row_by_row(data: Path) -> None:
    told = json.loads(kapelle("replay", "diff", FIRST, "end", "workflow", "etl", "--data", data, "-o", "json").stdout)
    text = kapelle("replay", "diff", FIRST, "end", "queue", "etl", "--data", data).stdout

    assert {row["table"] for row in told} == {"counts", "instances", "queue", "requests"}
    assert re.fullmatch(r'workflows-\d+ queue \["etl",2,1\]\n  \+ \{.*\}\n', text)


def test_a_moment_does_not_differ_from_itself(data: Path) -> None:
    told = kapelle("replay", "diff", FIRST, FIRST, "--data", data)

    assert (told.stdout, told.stderr) == ("", "no rows differ\n")


def test_a_directory_is_verified_partition_by_partition(data: Path) -> None:
    told = kapelle("verify", "--data", data)

    assert re.search(r"^workflows +\d+ +\d+ +\d+ +right$", told.stdout, re.MULTILINE)
    assert re.search(r"compared, \d+ rows are the fold of \d+ events", told.stderr)


def test_a_changed_row_is_named_and_ends_with_code_1(damaged: Path) -> None:
    told = kapelle("verify", "--data", damaged, "-o", "json", code=1)

    [wrong] = [verdict for verdict in json.loads(told.stdout) if verdict["differences"]]
    assert (wrong["processor"], wrong["first"]["table"], wrong["first"]["key"]) == ("workflows", "counts", ["etl"])
    assert f'processor workflows, partition {wrong["partition"]}, table counts, key ["etl"]: expected' in told.stderr
    assert [
        v for v in json.loads(kapelle("verify", "runs", "--data", damaged, "-o", "json").stdout) if v["first"]
    ] == []


def test_permits_and_runs_are_compared_with_each_other(data: Path) -> None:
    verdicts = json.loads(kapelle("verify", "--data", data, "-o", "json").stdout)

    [agreement] = [verdict for verdict in verdicts if verdict["processor"] == "permits and runs"]
    assert (agreement["broken"], agreement["skipped"]) == ([], "")
    alone = json.loads(kapelle("verify", "runs", "--data", data, "-o", "json").stdout)
    assert {verdict["processor"] for verdict in alone} == {"runs"}


def test_an_attempt_that_holds_a_permit_that_permits_does_not_know_ends_with_code_1(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    store = RocksStore(copy / "log", Memory())
    state: ShardState[Runs] = ShardState(runs, partition_of("etl/1", 12), store)
    row = state.reader.steps.get(("etl/1", "wait"))
    assert row is not None
    state.writer.steps.put(("etl/1", "wait"), replace(row, permits=("tag/gpu",), held=1))
    batch = Batch()
    batch.update({state.prefix + key: value for key, value in state.changes()})
    store.write(batch)
    store.close()

    told = kapelle("verify", "--data", copy, "-o", "json", code=1)

    [agreement] = [v for v in json.loads(told.stdout) if v["processor"] == "permits and runs"]
    claim = "tag/gpu: step 'wait' of etl/1/run 1, attempt 1"
    assert agreement["broken"] == [f"{claim} holds a permit, but by permits it is not there"]


def test_a_file_is_looked_at_compared_and_verified_like_a_directory(data: Path, tmp_path: Path) -> None:
    then, now = tmp_path / "then.avro", tmp_path / "now.avro"
    kapelle("replay", "export", then, "--data", data, "--as-of", FIRST)
    kapelle("replay", "export", now, "--data", data)

    shown = json.loads(kapelle("replay", "as-of", "end", "workflow", "etl", "--file", then, "-o", "json").stdout)
    differing = json.loads(kapelle("replay", "diff", then, now, "workflow", "etl", "-o", "json").stdout)
    verified = kapelle("verify", "--file", now)

    assert shown["rows"] == rows(FIRST, "workflow", "etl", data=data)
    assert {row["table"] for row in differing} == {"counts", "instances", "queue", "requests"}
    assert "right" in verified.stdout


def test_more_rows_than_were_asked_for_are_told_of(data: Path) -> None:
    told = kapelle("replay", "as-of", "end", "workflow", "etl", "--data", data, "-n", "2")

    assert len(told.stdout.splitlines()) == 3
    assert "2 rows from" in told.stderr
    assert "more exist: use -n 20" in told.stderr


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("replay", "as-of", "end", "workflow", "etl"), 2, "Expected --file, --data or --bootstrap-servers"),
    (("replay", "as-of", "soon", "workflow", "etl", "--data", "DATA"), 2, "Expected a time such as"),
    (("replay", "as-of", "end", "instance", "etl", "--data", "DATA"), 2, "Expected instance WORKFLOW NUMBER, but"),
    (("replay", "as-of", "end", "instance", "etl", "x", "--data", "DATA"), 2, "Expected the number of an instance"),
    (("replay", "as-of", "end", "table", "runs", "nests", "--data", "DATA"), 2, "Expected a table of runs among"),
    (("replay", "as-of", "end", "table", "walks", "steps", "--data", "DATA"), 3, "Expected processors among"),
    (("replay", "as-of", "end", "all", "--data", "nowhere"), 3, "found no log in nowhere"),
    (("replay", "as-of", "end", "all", "--file", "pyproject.toml"), 2, "it is not a Kapelle export file"),
    (("verify", "walks", "--data", "DATA"), 3, "Expected processors among"),
    (("verify", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.3"), 5, "no broker answered"),
    (("verify", "--data", "DATA", "--prefix", "other"), 4, "made with the prefix 'other'"),
]


@pytest.mark.parametrize(("words", "code", "reason"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_what_cannot_be_done_is_refused_with_the_reason(
    words: tuple[str, ...], code: int, reason: str, data: Path
) -> None:
    told = kapelle(*[str(data) if word == "DATA" else word for word in words], code=code)

    assert reason in told.stderr
    assert told.stdout == ""


def test_a_directory_in_use_is_refused(data: Path) -> None:
    store = RocksStore(data / "log", Memory())
    try:
        told = kapelle("verify", "--data", data, code=4)
    finally:
        store.close()

    assert "is in use by process" in told.stderr
