"""The language, row by row: every line of the tables in `conformance/` is an expression and what it gives."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kapelle.processors.sel import Extension, Host, Sel, SelError, Value, seeded

TABLES = Path(__file__).parent / "conformance"
NOW_MS = 1_700_000_000_000
INPUTS: dict[str, Value] = {
    "x": 5,
    "$d": 40,
    "_u": 41,
    "größe": 42,
    "flag": True,
    "name": "kapelle",
    "ratio": 2.5,
    "ts": NOW_MS,
    "from": 20240101,
    "to": 20240103,
    "longs": [1, 2, 3],
    "strings": ["one", "two"],
    "doubles": [1.5, 2.0],
    "booleans": [True, False],
    "empty": [],
    "map": {"k": "v", "n": 1},
    "nested": {"inner": {"deep": 7}},
}


class Engine(Extension):
    """An engine with one finished step, one signal, one loop and one subworkflow."""

    ANSWERS: ClassVar[dict[tuple[Value, ...], Value]] = {
        ("getFromStep", "job1", "row_count"): 3,
        ("getFromStep", "job1", "MAESTRO_STEP_STATUS"): "SUCCEEDED",
        ("getFromStep", "step_id"): "this_step",
        ("getFromInstance", "owner"): "ada",
        ("getFromInstance", "INITIATOR_TIMEZONE"): "",
        ("getFromSignal", "day"): 20240101,
        ("getFromSignal", "table_ready", "day"): 20240101,
        ("getFromSignalDependency", "0", "day"): 20240101,
        ("getFromForeach", "loop", "job", "out"): [1, 2, 3],
        ("getFromSubworkflow", "sub", "job", "out"): "child",
        ("nextUniqueId",): "01234567-89ab-4cde-8f01-23456789abcd",
        ("getExecutionEnvironment",): "test",
    }

    def get(self, name: str) -> Value:
        return INPUTS.get(name)

    def contains(self, name: str) -> bool:
        return name in INPUTS

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        if function == "getFromSignalOrDefault":
            return self.ANSWERS.get(("getFromSignal", *args[:-1]), args[-1])
        if (function, *args) in self.ANSWERS:
            return self.ANSWERS[(function, *args)]
        return self.missing(function, *args)


def host() -> Host:
    made = seeded("conformance", NOW_MS, Engine())
    return Host(made.now_ms, made.random, made.new_id, made.extension, {"twice": lambda n: 2 * n})


def rows() -> list[Any]:
    found = []
    for table in sorted(TABLES.glob("*.txt")):
        for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), start=1):
            if " => " in line and not line.startswith("#"):
                expression, _, expected = line.rpartition(" => ")
                found.append(pytest.param(expression, expected, id=f"{table.stem}:{number}"))
    return found


SEL = Sel()


@pytest.mark.parametrize(("expression", "expected"), rows())
def test_an_expression_gives_what_its_row_says(expression: str, expected: str) -> None:
    if expected.startswith("!"):
        kind, _, fragment = expected[1:].partition(" ")
        with pytest.raises(SelError) as caught:
            SEL.evaluate(expression, INPUTS, host())
        assert caught.value.kind == kind, str(caught.value)
        assert fragment.replace("\\\\", "\\") in str(caught.value)
        assert caught.value.line >= 1
        assert caught.value.column >= 1
    else:
        kind, _, value = expected.partition(" ")
        result = SEL.evaluate(expression, INPUTS, host())
        assert (result.type, result.value) == (kind, json.loads(value))
        assert type(result.value) is type(json.loads(value)) or result.type.endswith("_ARRAY")


def test_the_tables_hold_at_least_six_hundred_different_expressions() -> None:
    assert len({row.values[0] for row in rows()}) >= 600
