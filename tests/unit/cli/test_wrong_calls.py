"""Every wrong call ends with its exit code and one paragraph that says what was expected and what was found."""

import re
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.errors import AppFailed

APPS = "tests.unit.cli.apps"
PROOF = "tests.proof.processors:topology"
NOWHERE = ("--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.3")
PLAN = ("topics", "plan", *NOWHERE)
RUN = ("processors", "run", "--state-dir", "unused", *NOWHERE)

# The words of a command, how it ends, and what it must say.
WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("nonsense",), 2, "No such command 'nonsense'"),
    (("topics", "nonsense"), 2, "No such command 'nonsense'"),
    (("topology", "--nonsense"), 2, "No such option: --nonsense"),
    (("topology", "-o", "svg"), 2, "'svg' is not one of 'text', 'json', 'mermaid'"),
    (("topology", "--partitions", "0"), 2, "'--partitions': Input should be greater than or equal to 1"),
    (("topology", "--prefix", "Kapelle!"), 1, "lower-case letters, digits, dots and dashes"),
    # What --app names
    (("topology", "--app", "nonsense"), 2, "Expected --app MODULE:ATTRIBUTE such as"),
    (("topology", "--app", "a:b:c"), 2, "but found 'a:b:c'"),
    (("topology", "--app", "no.such:topology"), 3, "Expected a module no.such, but there is no no in"),
    (("topology", "--app", "tests.unit.cli.nothing:topology"), 3, "there is no tests.unit.cli.nothing"),
    (("topology", "--app", f"{APPS}:nothing"), 3, "Expected 'nothing' in module tests.unit.cli.apps"),
    (("topology", "--app", f"{APPS}:fixed.nothing"), 3, "Expected 'fixed.nothing'"),
    (("topology", "--app", f"{APPS}:number"), 2, "to be a Topology or a function that gives one, but found int"),
    (("topology", "--app", f"{APPS}:gives_a_number"), 2, "to give a Topology, but it gave int"),
    (("topology", "--app", f"{APPS}:needs_an_argument"), 2, "missing a required argument: 'shop'"),
    (("topology", "--app", f"{APPS}:raises", "--prefix", "p"), 2, "unexpected keyword argument 'prefix'"),
    (("topology", "--app", f"{APPS}:fixed", "--prefix", "p"), 2, "because --prefix was given, but it is a Topology"),
    (("topology", "--app", f"{APPS}:raises"), 1, "LookupError: no such shop"),
    (("topology", "--app", f"{APPS}:is_no_topology"), 1, "Expected each processor once"),
    (("topology", "--app", "tests.unit.cli.raising:topology"), 1, "RuntimeError: this module never works"),
    (("topology", "--app", "tests.unit.cli.lacking:topology"), 1, "No module named 'no_such_package'"),
    # The way to Kafka
    (("topics", "plan"), 2, "Expected --bootstrap-servers, or bootstrap.servers in the file of --config"),
    ((*PLAN, "--config", "no-such-file"), 2, "'no-such-file' does not exist"),
    ((*PLAN, "-X", "linger.ms"), 2, "Expected name=value after -X number 1, but found no equals sign"),
    ((*PLAN, "-X", "=5"), 2, "Expected name=value after -X number 1, but found no name"),
    ((*PLAN, "-X", "acks=1"), 2, "'acks' is set by Kapelle: a transaction needs all replicas"),
    ((*PLAN, "-X", "producer.acks=1"), 2, "'producer.acks' is set by Kapelle"),
    ((*PLAN, "-X", "no.such.setting=1"), 2, 'No such configuration property: "no.such.setting"'),
    (("topics", "apply", *NOWHERE, "-X", "no.such.setting=1"), 2, 'No such configuration property: "no.such.setting"'),
    (("dlq", "list", *NOWHERE, "-X", "a.b=1"), 2, 'No such configuration property: "a.b"'),
    ((*RUN, "--app", PROOF, "-X", "a.b=1"), 2, 'No such configuration property: "a.b"'),
    ((*RUN, "--app", PROOF, "-X", "consumer.group.id=mine"), 2, "each processor has a group of its own"),
    ((*PLAN, "-X", "security.protocol=telepathy"), 2, 'Invalid value "telepathy"'),
    ((*PLAN, "--timeout", "0"), 2, "'--timeout': Input should be greater than or equal to 0.1"),
    (PLAN, 5, "Expected Kafka at 127.0.0.1:1, but no broker answered within 0.3 s: "),
    (("topics", "apply", *NOWHERE), 5, "Connection refused"),
    (
        ("topics", "apply", *NOWHERE, "--replication", "-2"),
        2,
        "'--replication': Input should be greater than or equal to -1",
    ),
    (("topics", "verify", *NOWHERE), 5, "Connection refused"),
    (("dlq", "list", *NOWHERE), 5, "Connection refused"),
    (("dlq", "list", *NOWHERE, "-n", "0"), 2, "'--count': Input should be greater than or equal to 1"),
    (("topics", "plan", "--bootstrap-servers", "kafka.invalid:9092", "--timeout", "0.3"), 5, "Failed to resolve"),
    # Running
    (("processors", "run", *NOWHERE), 2, "Missing option '--state-dir'"),
    (
        (*RUN, "--app", "tests.unit.cli.apps:empty"),
        4,
        "Expected processors to run, but tests.unit.cli.apps:empty has none",
    ),
    ((*RUN, "--app", PROOF, "counting", "cuonting"), 3, "Expected processors among counting, joining,"),
    ((*RUN, "--app", PROOF, "--protocol", "nonsense"), 2, "'nonsense' is not one of 'classic', 'consumer'"),
    ((*RUN, "--app", PROOF, "--statistics-ms", "-1"), 2, "Input should be greater than or equal to 0"),
    ((*RUN, "--app", PROOF, "--set-aside", "ticks"), 2, "Expected a record such as kapelle.runs.commands-3@1234"),
    (("dev", "--set-aside", "ticks-1"), 2, "Expected a record such as kapelle.runs.commands-3@1234"),
    (("dev", "--on-bug", "ignore"), 2, "'ignore' is not one of 'stop', 'dead-letter'"),
    ((*RUN, "--app", PROOF, "--on-bug", "ignore"), 2, "'ignore' is not one of 'stop', 'dead-letter'"),
    (
        (*RUN, "--app", PROOF, "--metrics-port", "70000"),
        2,
        "'--metrics-port': Input should be less than or equal to 65535",
    ),
    ((*RUN, "--app", PROOF), 5, "Connection refused"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing in it to work in, and no settings from outside."""
    monkeypatch.delenv("KAPELLE_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.delenv("KAPELLE_APP", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def kapelle(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="kapelle")


def said(result: Result) -> str:
    """What was said on stderr, without the line breaks of a narrow terminal."""
    return re.sub(r"\s+", " ", result.stderr)


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_a_wrong_call_ends_with_its_code_and_its_reason(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    result = kapelle(*words)

    assert message in said(result)
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_line_of_a_settings_file_that_is_no_setting_is_named_by_its_number(folder: Path) -> None:
    (folder / "client.properties").write_text("# mine\n\nsasl.username=me\nsasl.password hunter2\n")

    result = kapelle(*PLAN, "--config", "client.properties")

    assert "Expected name=value on line 4 of client.properties, but found no equals sign" in said(result)
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "settings",
    [
        ("sasl.password hunter2",),
        ("sasl.password=hunter2", "sasl.mechanism=PLAIN"),
        ("sasl.password=hunter2", "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"),
        ("ssl.key.password=hunter2", "security.protocol=SSL", "ssl.key.location=nowhere"),
        ("ssl.key.pem=hunter2", "security.protocol=SSL"),
        ("consumer.sasl.password=hunter2", "no.such.setting=1"),
    ],
)
def test_no_message_ever_holds_a_secret(folder: Path, settings: tuple[str, ...]) -> None:
    result = kapelle(*PLAN, *(word for setting in settings for word in ("-X", setting)))

    assert result.exit_code != 0
    assert "hunter2" not in result.output


def test_an_address_that_something_else_listens_on_is_refused_before_anything_runs(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        result = kapelle("topics", "plan", "--bootstrap-servers", f"127.0.0.1:{port}", "--timeout", "0.3")

    assert f"Expected Kafka at 127.0.0.1:{port}, but no broker answered within 0.3 s" in said(result)
    assert result.exit_code == 5


def test_a_traceback_is_shown_to_whoever_asks_for_it(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["--debug", "topology", "--app", f"{APPS}:raises"])

    assert isinstance(result.exception, AppFailed)
    assert isinstance(result.exception.__cause__, LookupError)
