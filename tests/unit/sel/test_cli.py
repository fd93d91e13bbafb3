"""`kapelle sel eval` and `kapelle sel check`, as a person or a script calls them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.commands.sel import app


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


def answers(lines: list[Any]) -> list[dict[str, Any]]:
    given = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = run("eval", "--jsonl", "-", "--now-ms", "0", "--seed", "s", given=given)
    assert done.exit_code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["1 + 1"], "2"),
        (["x > 3 && flag", "--param", "x=5", "--param", "flag=true"], "true"),
        (["'a' + x", "-p", "x=b c"], "ab c"),
        (["x + 1", "-p", 'x="1"'], "11"),
        (["x[1]", "-p", "x=[1,2]"], "2"),
        (["x.get('a')", "-p", 'x={"a":[1.5]}'], "[1.5]"),
        (["System.currentTimeMillis()", "--now-ms", "5"], "5"),
    ],
)
def test_eval_prints_the_value(arguments: list[str], expected: str) -> None:
    done = run("eval", *arguments)

    assert (done.exit_code, done.stdout) == (0, expected + "\n")


def test_eval_says_the_type_beside_the_value() -> None:
    assert run("eval", "1 + 1").stderr == "LONG\n"


def test_eval_puts_a_caret_under_the_error() -> None:
    done = run("eval", "x = 1;\n'abc'.substr(1)")

    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "Unsupported: Expected a method of STRING, but found 'substr'",
        "  line 2, column 7",
        "  'abc'.substr(1)",
        "        ^^^^^^",
        "  hint: did you mean 'substring'?",
    ]


def test_eval_answers_in_json_when_asked() -> None:
    assert json.loads(run("eval", "x + 1", "-p", "x=1", "--json").stdout) == {
        "type": "LONG",
        "value": 2,
        "names": ["x"],
    }
    failed = run("eval", "1/0", "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["error"]) == (1, "BadValue")


def test_eval_with_a_seed_gives_the_same_ids_again() -> None:
    once, again, other = (run("eval", "UUID.randomUUID().toString()", "--seed", seed).stdout for seed in "aab")

    assert once == again != other


@pytest.mark.parametrize("arguments", [[], ["1", "--jsonl", "-"], ["1", "-p", "x"], ["1", "-p", "=1"]])
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    assert run("eval", *arguments).exit_code == 2


def test_a_collection_is_answered_line_by_line_and_in_order() -> None:
    given: list[Any] = [
        {"expr": "x + 1", "params": {"x": 3}},
        {"expr": "1 +"},
        {"expr": "unknown"},
        "not json",
        "",
        "[1]",
        {"expr": 5},
        {"expr": "1", "params": [1]},
        {"expr": "x", "params": None},
        {"expr": "new String[]{'a'}"},
        {"expr": "m = new Map(); m.put('k', 1.5); m"},
        {"expr": "while (true) { }"},
        {"expr": "throw 'no'"},
        {"expr": "1.0 / 0"},
    ]

    made = answers(given)

    assert len(made) == len(given)
    assert [answer.get("error", answer.get("type")) for answer in made] == [
        "LONG",
        "ParseError",
        "InvalidResult",
        "BadLine",
        "BadLine",
        "BadLine",
        "BadLine",
        "BadLine",
        "InvalidResult",
        "STRING_ARRAY",
        "MAP",
        "LimitExceeded",
        "Thrown",
        "DOUBLE",
    ]
    assert made[0] == {"type": "LONG", "value": 4, "names": ["x"]}
    assert made[1]["message"] == "Expected an expression, but the expression ends"
    assert (made[2]["type"], made[2]["names"]) == ("NULL", ["unknown"])
    assert made[10]["value"] == {"k": 1.5}


@pytest.mark.parametrize(
    "line", ["9" * 5000, "[" * 100_000, '{"expr": "x", "params": {"x": ' + "9" * 30 + "}}", "\x00", '"\\ud800"']
)
def test_whatever_a_line_holds_it_gets_one_answer(line: str) -> None:
    (answer,) = answers([line])

    assert "error" in answer


def test_half_a_surrogate_pair_in_a_line_gets_an_answer() -> None:
    assert answers([{"expr": "x.length()", "params": {"x": "\ud800"}}]) == [
        {"type": "LONG", "value": 1, "names": ["x"]}
    ]


def test_a_value_with_half_a_surrogate_pair_is_still_one_line_of_utf8() -> None:
    (answer,) = answers([{"expr": "x", "params": {"x": "\ud800"}}])

    assert answer["type"] == "STRING"


def test_a_collection_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text('{"expr": "1"}\n{"expr": "2"}')

    assert [json.loads(line)["value"] for line in run("eval", "--jsonl", str(file)).stdout.splitlines()] == [1, 2]


def test_check_lists_the_names_of_an_expression(tmp_path: Path) -> None:
    file = tmp_path / "daily.sel"
    file.write_text("y = x + 1;\nreturn y + params.get('z');")

    done = run("check", str(file))

    assert (done.exit_code, done.stdout) == (0, f"{file}: ok, uses x, params\n")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("1 +\n+ * 2", 2, 3), ("x = Math.foo();", 1, 10), ("'a'.foo()", 1, 5), ("new Thread()", 1, 5)],
)
def test_check_finds_what_is_wrong_without_evaluating(tmp_path: Path, text: str, line: int, column: int) -> None:
    file = tmp_path / "wrong.sel"
    file.write_text(text)

    done = run("check", str(file))

    assert done.exit_code == 1
    assert f"line {line}, column {column}" in done.stderr
    assert "^" in done.stderr


def test_check_reads_expressions_from_standard_input() -> None:
    assert run("check", "-", given="1 + 1").stdout == "-: ok, uses no names\n"


def test_check_finds_every_expression_of_a_workflow_definition(tmp_path: Path) -> None:
    file = tmp_path / "workflow.json"
    file.write_text(
        json.dumps(
            {
                "workflow": {
                    "params": {
                        "a": {"type": "LONG", "expression": "b + 1"},
                        "b": {"type": "LONG", "value": 1, "validator": "value > 0"},
                        "c": {"type": "LONG", "value": 1, "validator": "@Min(0)"},
                    },
                    "signal_triggers": [{"definitions": {"x": {}}, "dedup_expr": "x__day", "condition": "x__n > 1"}],
                    "steps": [
                        {"step": {"id": "s", "transition": {"successors": {"t": "a > 0", "u": "true"}}}},
                        {"while": {"id": "w", "condition": "i <", "steps": []}},
                    ],
                }
            }
        )
    )

    done = run("check", str(file))

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "workflow.params.a.expression: ok, uses b",
        "workflow.params.b.validator: ok, uses value",
        "workflow.signal_triggers[0].dedup_expr: ok, uses x__day",
        "workflow.signal_triggers[0].condition: ok, uses x__n",
        "workflow.steps[0].step.transition.successors.t: ok, uses a",
        "workflow.steps[0].step.transition.successors.u: ok, uses no names",
    ]
    assert "workflow.steps[1].while.condition:" in done.stderr


@pytest.mark.parametrize(("name", "text"), [("a.json", "nope"), ("a.jsonl", "{}"), ("b.jsonl", "nope")])
def test_check_refuses_a_file_that_is_not_what_its_name_says(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)

    assert run("check", str(file)).exit_code == 2
