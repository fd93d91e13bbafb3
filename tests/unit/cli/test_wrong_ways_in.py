"""Wrong flags, files, workers, addresses and tokens: each ends with its exit code and its reason."""

import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.worker_modules import load_workers
from kapelle.client import exchange
from kapelle.topology.tables.lock import DirectoryLock

WORKERS = "tests.unit.cli.workers"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - to be refused
ON_KAFKA = ("worker", "run", WORKERS, "--bootstrap-servers", "127.0.0.1:1")
NOBODY = ("--url", "http://127.0.0.1:1")

# Files that the commands are given, by their names.
FILES = {
    "good.yaml": "Workflow:\n  id: etl\n  owner: ann\n  jobs:\n    - job: {id: load, type: NoOp}\n",
    "good.json": '{"properties": {"owner": "ann"}, "workflow": '
    '{"id": "etl", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}',
    "bad.json": '{"workflow": {"id": "etl", "steps": [{"step": {"id": "a", "type": "NoOp", "timout": "1h"}}]}}',
    "template.json": '{"workflow": {"id": "etl", "steps": [{"template": {"id": "a", "sub_type": "b"}}]}}',
    "broken.json": '{"workflow": ',
    "broken.yaml": "Workflow: [",
    "list.yaml": "- a\n- b\n",
    "empty.json": "",
    "notes.txt": "hello",
    "latin.yaml": "Workflow: \xe9",
    "tokens.txt": "king secret-token\n",
    "good.txt": "operator secret-token\n",
    "short.txt": "admin abc\n",
}

# The words of a command, how it ends, and what it must say.
WRONG: list[tuple[tuple[str, ...], int, str]] = [
    # Files
    (("workflow", "push"), 2, "Missing argument 'FILE|-'"),
    (
        ("workflow", "push", "no-such.yaml"),
        2,
        "Expected a definition in no-such.yaml, but it cannot be read: No such file",
    ),
    (("workflow", "push", "."), 2, "Expected a file that ends in .json, .yaml or .yml, but found '.'"),
    (("workflow", "push", "notes.txt"), 2, "Expected a file that ends in .json, .yaml or .yml, but found 'notes.txt'"),
    (("workflow", "validate", "latin.yaml"), 2, "Expected latin.yaml to be UTF-8"),
    (("workflow", "validate", "bad.json"), 1, "timout: Expected the key 'timeout'"),
    (("workflow", "validate", "template.json"), 1, "but found 'template', which cannot be run"),
    (
        ("workflow", "validate", "broken.json"),
        1,
        "Expected a definition that can be run in broken.json, but found 1 problem",
    ),
    (
        ("workflow", "validate", "broken.yaml"),
        1,
        "Expected a definition that can be run in broken.yaml, but found 1 problem",
    ),
    (("workflow", "validate", "list.yaml"), 1, "Expected one key 'Workflow' with an object"),
    (("workflow", "validate", "empty.json"), 1, "Expected a definition that can be run in empty.json"),
    # The server
    (("workflow", "push", "good.yaml", *NOBODY), 5, "Expected Kapelle at http://127.0.0.1:1, but there is no answer"),
    (("workflow", "list", *NOBODY), 5, "Is the server running? `kapelle dev` starts one"),
    (
        ("workflow", "list", "--url", "nonsense"),
        2,
        "Expected a URL such as http://127.0.0.1:8080, but found 'nonsense'",
    ),
    (("workflow", "list", "--url", "ftp://x"), 2, "Expected a URL such as"),
    (("workflow", "list", "--limit", "0"), 2, "'--limit'"),
    (("workflow", "list", "-o", "xml"), 2, "'xml' is not one of 'text', 'json'"),
    (("run", "start"), 2, "Missing argument 'WORKFLOW'"),
    (("run", "start", "etl", "--param", "day"), 2, "Expected --param NAME=VALUE, but found 'day'"),
    (("run", "start", "etl", "-p", "=1"), 2, "Expected --param NAME=VALUE, but found '=1'"),
    (("run", "start", "etl", "-p", "a=1", "-p", "a=2"), 2, "Expected each parameter once, but found 'a' again"),
    (("run", "start", "etl", "-p", 'a=[1, "x"]', *NOBODY), 2, "Expected values of one type in parameter 'a'"),
    (("run", "start", "etl", *NOBODY), 5, "there is no answer"),
    (("run", "describe", "etl"), 2, "Missing argument 'INSTANCE'"),
    (("run", "describe", "etl", "zero"), 2, "'INSTANCE'"),
    (("run", "describe", "etl", "0"), 2, "Input should be greater than or equal to 1"),
    (("run", "watch", "etl", "1", "--timeout", "0"), 2, "'--timeout'"),
    (("run", "watch", "etl", "1", *NOBODY), 5, "there is no answer"),
    (("run", "list", "--param", "day", *NOBODY), 2, "Expected --param NAME=VALUE, but found 'day'"),
    (("run", "history", "etl", "1", *NOBODY), 5, "there is no answer"),
    (("run", "count", *NOBODY), 5, "there is no answer"),
    (("run", "matrix", "etl", "-n", "0"), 2, "'--limit'"),
    (("event", "tail", *NOBODY), 5, "there is no answer"),
    (("event", "tail", "-n", "0"), 2, "'--count'"),
    (("step", "skip", "etl", "1"), 2, "Missing argument 'STEP'"),
    (("step", "nonsense"), 2, "No such command 'nonsense'"),
    # Workers
    (("worker", "run"), 2, "Missing argument"),
    (("worker", "run", "no such"), 2, "Expected MODULE, MODULE:WORKER or a file such as steps.py, but found 'no such'"),
    (("worker", "run", "no_such_module"), 3, "Expected a module no_such_module"),
    (("worker", "run", "no_such.py"), 3, "Expected a file no_such.py, but it does not exist"),
    (("worker", "run", f"{WORKERS}:nothing"), 3, "Expected 'nothing' in module tests.unit.cli.workers"),
    (("worker", "run", f"{WORKERS}:number"), 2, "to be a Worker, but found int"),
    (("worker", "run", f"{WORKERS}:empty"), 2, "but it has none: decorate a function with @worker.step(type)"),
    (("worker", "run", "tests.unit.cli.apps"), 2, "Expected a Worker in module tests.unit.cli.apps, but found none"),
    (("worker", "run", "tests.unit.cli.two_workers"), 2, "but found 2: say which with tests.unit.cli.two_workers:NAME"),
    (
        ("worker", "run", WORKERS, f"{WORKERS}:other"),
        2,
        "Expected one function for step type 'load', but found a second",
    ),
    (("worker", "run", "tests.unit.cli.bad_step"), 2, "that can be given by name, but 'rows'"),
    (("worker", "run", "tests.unit.cli.raising"), 1, "RuntimeError: this module never works"),
    (("worker", "run", WORKERS, "--concurrency", "0"), 2, "'--concurrency'"),
    (("worker", "run", WORKERS, "--url", "nonsense"), 4, "Expected a URL such as"),
    (
        ("worker", "run", WORKERS, "--bootstrap-servers", "x:1", "--dispatch", "post"),
        2,
        "is not one of 'consumer', 'share'",
    ),
    (("worker", "run", WORKERS, "--dispatch", "share"), 2, "'--dispatch': it requires --bootstrap-servers"),
    (("worker", "run", WORKERS, "--prefix", "shop"), 2, "'--prefix': it requires --bootstrap-servers"),
    (("worker", "run", WORKERS, "-X", "acks=all"), 2, "'-X': it requires --bootstrap-servers"),
    ((*ON_KAFKA, "-X", "no.such=1"), 2, 'No such configuration property: "no.such"'),
    ((*ON_KAFKA, "-X", "acks"), 2, "Expected name=value after -X number 1, but found no equals sign"),
    # The development server
    (("dev", "--port", "70000"), 2, "'--port'"),
    (
        ("dev", "--host", EVERYWHERE),
        2,
        "which other machines can reach, but found none: give --tokens FILE, or serve on 127.0.0.1",
    ),
    (("dev", "--host", "::"), 2, "Expected tokens for an API on ::"),
    (("dev", "--tokens", "no-such.txt"), 2, "Expected a file of tokens at no-such.txt"),
    (("dev", "--tokens", "tokens.txt"), 2, "Expected viewer, operator or admin and a token in line 1 of tokens.txt"),
    (("dev", "--tokens", "good.txt", "--worker", WORKERS), 2, "Expected a token of the role operator in KAPELLE_TOKEN"),
    (("dev", "--tokens", "short.txt"), 2, "Expected a token of at least 8 visible ASCII characters"),
    (("dev", "--data", "notes.txt"), 2, "'--data'"),
    (("dev", "--worker", "no_such_module"), 3, "Expected a module no_such_module"),
    (("dev", "--port", "TAKEN"), 4, "but that failed"),
    (("dev", "--data", "IN_USE"), 4, "stop that process, or use another --data"),
    # The API on Kafka
    (("api", "run"), 2, "Expected --bootstrap-servers, or bootstrap.servers in the file of --config"),
    (("api", "run", "--bootstrap-servers", "127.0.0.1:1", "--host", EVERYWHERE), 2, "which other machines can reach"),
    (("api", "run", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.3"), 5, "no broker answered within 0.3 s"),
    (("api", "run", "--bootstrap-servers", "127.0.0.1:1", "--keep-days", "0"), 2, "'--keep-days'"),
    (("api", "rebuild", "--bootstrap-servers", "127.0.0.1:1"), 2, "Missing option '--views-dir'"),
    (
        ("api", "rebuild", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.3", "--views-dir", "views"),
        5,
        "no broker answered within 0.3 s",
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files, and no settings from outside."""
    for name in ("KAPELLE_URL", "KAPELLE_TOKEN", "KAPELLE_TOKENS", "KAPELLE_USER", "KAPELLE_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(exchange, "RETRY_S", ())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def kapelle(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, words, prog_name="kapelle", input=given)


def said(result: Result) -> str:
    """What was said on stderr, without the line breaks of a narrow terminal."""
    return re.sub(r"\s+", " ", result.stderr)


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_a_wrong_call_ends_with_its_code_and_its_reason(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        lock = DirectoryLock(folder / "in-use" / "log")
        known = {"TAKEN": str(taken.getsockname()[1]), "IN_USE": str(folder / "in-use")}
        result = kapelle(*(known.get(word, word) for word in words))
        lock.release()

    assert message in said(result)
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["good.yaml", "good.json"])
def test_a_good_definition_is_valid_without_any_server(folder: Path, name: str) -> None:
    result = kapelle("workflow", "validate", name)

    assert (result.exit_code, result.stdout) == (0, f"{name} can be pushed\n")


@pytest.mark.parametrize("name", ["good.yaml", "good.json"])
def test_a_definition_on_stdin_is_told_from_the_other_form_by_its_first_brace(folder: Path, name: str) -> None:
    result = kapelle("workflow", "validate", "-", given=FILES[name])

    assert (result.exit_code, result.stdout) == (0, "stdin can be pushed\n")


def test_a_definition_beyond_the_limit_is_refused_before_it_is_sent(folder: Path) -> None:
    result = kapelle("workflow", "push", "-", given="{" + " " * 1_000_000)

    assert result.exit_code == 2
    assert "Expected at most 1,000,000 bytes in stdin, but found more" in said(result)


def steps_of(type_name: str) -> str:
    return (
        f"from kapelle.worker import Worker\nworker = Worker()\n@worker.step({type_name!r})\ndef step() -> None: ...\n"
    )


def test_a_file_is_loaded_itself_whatever_else_has_its_name(folder: Path) -> None:
    for place, kind in (("steps.py", "here"), ("a/steps.py", "a"), ("b/steps.py", "b"), ("c/my-steps.py", "c")):
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text(steps_of(kind))
    (folder / "json.py").write_text(steps_of("json"))

    found = load_workers(["a/steps.py", "b/steps.py:worker", "c/my-steps.py", "json.py", "steps.py"])

    assert set(found.steps) == {"a", "b", "c", "json", "here"}


def test_a_file_may_import_what_lies_beside_it(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "beside_the_steps.py").write_text("KIND = 'beside'\n")
    (folder / "deep" / "steps.py").write_text(
        "from beside_the_steps import KIND\n" + steps_of("x").replace("'x'", "KIND")
    )

    assert set(load_workers(["deep/steps.py"]).steps) == {"beside"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import no_such_thing",
            "wrong.py could not be imported: ModuleNotFoundError: No module named 'no_such_thing'",
        ),
        ("def (", "wrong.py could not be imported: SyntaxError"),
        ("x = 1", "Expected a Worker in wrong.py, but found none"),
    ],
)
def test_a_file_that_holds_no_worker_says_why(folder: Path, text: str, message: str) -> None:
    (folder / "wrong.py").write_text(text)

    result = kapelle("worker", "run", "wrong.py", *NOBODY)

    assert result.exit_code in (1, 2)
    assert message in said(result)


def test_nothing_is_deleted_without_a_yes(folder: Path) -> None:
    result = kapelle("workflow", "delete", "etl", *NOBODY, given="n\n")

    assert result.exit_code == 1
    assert "Delete workflow etl?" in result.stderr


@pytest.mark.parametrize(("words", "code"), [(("workflow", "list"), 2), (("worker", "run", WORKERS), 4)])
@pytest.mark.parametrize("secret", ["two\nlines", "\x07bell", "\xfc"])
def test_a_token_that_cannot_be_sent_is_refused_and_never_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, secret: str, words: tuple[str, ...], code: int
) -> None:
    monkeypatch.setenv("KAPELLE_TOKEN", secret)

    result = kapelle(*words, *NOBODY)

    assert result.exit_code == code
    assert "Expected a token of visible ASCII characters" in said(result)
    assert secret not in result.stderr
