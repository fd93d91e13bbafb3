"""Every example of docs/sel.md runs, and every member is documented."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kapelle.cli.commands.sel import app
from kapelle.processors.definitions.texts import COMPILING_VISITS_MAX
from kapelle.processors.params import SEL_LIMITS
from kapelle.processors.sel import Limits, Sel, SelError, seeded
from kapelle.processors.sel.members.registry import FIELDS, METHODS, NEW, STATIC
from kapelle.processors.sel.program import VISITS_PER_TEXT, VISITS_PER_WORD

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "sel.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
INPUTS: dict[str, Any] = {
    "x": 5,
    "flag": True,
    "name": "ada",
    "longs": [1, 2, 3],
    "map": {"k": "v"},
    "RUN_TS": 1_700_000_000_000,
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SEL = Sel()


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(TEXT) if found == language]


EXAMPLES = [
    tuple(part.strip() for part in line.split("// →", 1)) for body in blocks("sel") for line in body.splitlines()
]


@pytest.mark.parametrize(("expression", "expected"), EXAMPLES)
def test_an_example_gives_what_the_page_says(expression: str, expected: str) -> None:
    host = seeded("docs", INPUTS["RUN_TS"])
    if expected.startswith("!"):
        kind, _, words = expected[1:].partition(" ")
        with pytest.raises(SelError) as caught:
            SEL.evaluate(expression, INPUTS, host)
        assert caught.value.kind == kind
        assert words in str(caught.value)
    else:
        kind, _, value = expected.partition(" ")
        result = SEL.evaluate(expression, INPUTS, host)
        assert (result.type, result.value) == (kind, json.loads(value))


def test_every_line_of_the_examples_has_a_result() -> None:
    assert len(EXAMPLES) > 80
    assert all(len(example) == 2 and all(example) for example in EXAMPLES)


def test_the_commands_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for body in blocks("console"):
        for part in body.split("$ ")[1:]:
            command, _, expected = part.partition("\n")
            words = shlex.split(command)
            if words[0] == "cat":
                (tmp_path / words[1]).write_text(expected, encoding="utf-8")
                continue
            assert words[:2] == ["kapelle", "sel"]
            done = CliRunner().invoke(app, words[2:])
            shown = done.stdout if done.exit_code == 0 else done.stderr
            assert shown == expected


@pytest.mark.parametrize(("column", "limits"), [(1, SEL_LIMITS), (2, Limits())])
def test_the_limits_of_the_page_are_those_of_the_engine_and_the_defaults(column: int, limits: Limits) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \|", TEXT, re.MULTILINE)

    assert {row[0]: int(row[column].replace(",", "")) for row in rows} == {
        name: getattr(limits, name) for name in Limits.__struct_fields__
    }


def test_the_prices_of_compiling_are_on_the_page() -> None:
    assert f"counts {VISITS_PER_TEXT} visits and {VISITS_PER_WORD} for each of its words" in TEXT
    assert f"{COMPILING_VISITS_MAX:,} visits on compiling" in " ".join(TEXT.split())


def test_every_member_is_on_the_page() -> None:
    units = {f"{sign}{unit}" for sign in ("plus", "minus") for unit in ("Years", "Millis")}
    spelt_out = {n for table in (*METHODS.values(), *STATIC.values(), *FIELDS.values()) for n in table} | set(NEW)
    ranges = re.compile(r"(plus|minus)(Months|Weeks|Days|Hours|Minutes|Seconds)|(TUES|WEDNES|THURS|FRI|SATUR)DAY")

    missing = [name for name in spelt_out | units if not ranges.fullmatch(name) and not re.search(rf"\b{name}\b", TEXT)]

    assert missing == []


def test_every_kind_of_error_is_on_the_page() -> None:
    kinds = {kind.__name__ for kind in SelError.__subclasses__()}

    assert kinds == set(re.findall(r"^\| (\w+) \| (?:the|a|an) .*$", TEXT.split("## Errors")[1], re.MULTILINE))
