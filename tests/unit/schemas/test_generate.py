"""The generator makes modules that need no formatter, no editing, and no explanation when it refuses."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kapelle.schemas import BadSchema, Catalog, Codec
from kapelle.schemas.generate import generate, main
from tests.unit.schemas.fresh import (
    ALL,
    DEFAULTS,
    SHARED,
    contract_of,
    field,
    module_of,
    record,
    source_of,
    write_sources,
)

ROOT = Path(__file__).parents[3]
LONG_NAME = "a_rather_long_name_for_a_field_of_a_record"
LONG = record(
    "Long",
    field(
        LONG_NAME, {"type": "map", "values": {"type": "array", "items": {"type": "array", "items": ["null", "int"]}}}
    ),
    *(field(f"{LONG_NAME}_{n}", "string") for n in range(4)),
)


def test_the_products_own_module_is_fresh() -> None:
    made = generate(ROOT / "schemas/avsc", ROOT / "schemas/released")

    assert (ROOT / "schemas/kapelle/schemas/contracts.py").read_text() == made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of every construct, with earlier versions long and short."""
    earlier = {"fresh.Shared": [short_schema(n) for n in range(9)], "fresh.Everything": [short_schema(1)]}
    file = tmp_path_factory.mktemp("made") / "contracts.py"
    file.write_text(source_of(ALL, SHARED, DEFAULTS, LONG, record("Empty"), earlier=earlier))
    return file


def short_schema(n: int) -> str:
    return f'{{"name":"fresh.Shared","type":"record","fields":[{{"name":"id{n}","type":"string"}}]}}'


def test_the_output_is_formatted(made: Path) -> None:
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]

    subprocess.run([sys.executable, "-m", "ruff", "format", "--diff", *options, str(made)], check=True)


def test_the_output_passes_the_linter(made: Path) -> None:
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]

    subprocess.run([sys.executable, "-m", "ruff", "check", *options, str(made)], check=True)


def test_the_output_passes_strict_type_checking(made: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(made)]

    subprocess.run(command, check=True, cwd=ROOT)


def test_defaults_are_those_of_the_schema() -> None:
    module = module_of(DEFAULTS, SHARED)

    value = module.Defaults(needed="yes")

    assert msgspec.to_builtins(value, builtin_types=(bytes,)) == {
        "flag": True,
        "needed": "yes",
        "small": -5,
        "whole": 2.0,
        "raw": b'\xff"\\a',
        "text": 'it\'s "ä" \\',
        "mood": "LOUD",
        "maybe": None,
        "perhaps": 7,
        "one": ("a",),
        "two": (1, 2),
        "empty": {},
        "filled": {"a": "1", "b": "2"},
        "shared": {"id": "x"},
    }


def test_each_instance_has_dictionaries_of_its_own() -> None:
    module = module_of(DEFAULTS, SHARED)

    first, second = module.Defaults(needed="1"), module.Defaults(needed="2")

    assert first.empty is not second.empty
    assert first.filled is not second.filled


def test_only_types_that_hold_a_dictionary_are_tracked_by_the_garbage_collector() -> None:
    module = module_of(DEFAULTS, SHARED)

    assert module.Defaults.__struct_config__.gc
    assert not module.Shared.__struct_config__.gc


def test_a_contract_adds_nothing_to_its_instances() -> None:
    module = module_of(SHARED)

    class Bare(msgspec.Struct, frozen=True, gc=False):
        id: str

    assert sys.getsizeof(module.Shared("x")) == sys.getsizeof(Bare("x"))


def test_a_schema_text_survives_being_source_text() -> None:
    contract = contract_of(record("Doc", field("a", "string", default="'\\'\"\n\u2028ä"), doc="\"\"\" \\ ' '''"))

    assert msgspec.json.decode(contract.SCHEMA)["fields"][0]["default"] == "'\\'\"\n\u2028ä"
    assert Codec(Catalog.of(contract)).decode(Codec(Catalog.of(contract)).encode(contract())) == contract()


def test_a_type_of_another_file_is_one_class() -> None:
    module = module_of(record("User", field("shared", "fresh.Shared")), SHARED)

    assert module.User.__annotations__["shared"] is module.Shared


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("fixed", record("R", field("x", {"type": "fixed", "name": "F", "size": 4})), "fixed"),
    ("float of 32 bits", record("R", field("x", "float")), "use double"),
    ("float within", record("R", field("x", {"type": "array", "items": ["null", "float"]})), "use double"),
    ("wide union", record("R", field("x", ["null", "int", "string"])), "unions are of null and one other type"),
    ("bare null", record("R", field("x", "null")), "null only in a union"),
    ("decimal", record("R", field("x", {"type": "bytes", "logicalType": "decimal"})), "no logical type but"),
    ("name without _ms", record("R", field("x", {"type": "long", "logicalType": "timestamp-millis"})), "ends in _ms"),
    ("keyword", record("R", field("class", "int")), "lower case"),
    ("method", record("R", field("to_avro", "int")), "lower case"),
    ("capital field", record("R", field("X", "int")), "lower case"),
    ("class name", record("Contract", field("x", "int")), "taken by the module itself"),
    ("small class", record("small", field("x", "int")), "CapWords"),
    ("symbol", record("R", field("x", {"type": "enum", "name": "E", "symbols": ["a"]})), "CAPITALS"),
    ("recursion", record("R", field("x", ["null", "R"])), "do not contain themselves"),
    ("misspelt", record("R", field("x", "int", defualt=1)), "defualt"),
    (
        "two of a name",
        record("R", field("x", record("S")), field("y", record("S", namespace="other"))),
        "taken by fresh.S",
    ),
    ("empty items", record("R", field("x", {"type": "array", "items": record("None_")})), "at least one byte"),
    ("unknown type", record("R", field("x", "Nowhere")), "fresh.Nowhere"),
    ("no namespace", {"type": "record", "name": "R", "fields": []}, "namespace"),
    ("default of another type", record("R", field("x", "int", default="1")), "default of its type"),
]


@pytest.mark.parametrize(("schema", "reason"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_contracts_may_not_use_is_refused_with_its_place(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadSchema, match=reason) as refused:
        source_of(schema)

    assert schema["name"] in refused.value.where


def test_files_that_contain_each_other_are_refused() -> None:
    with pytest.raises(BadSchema, match="do not contain themselves"):
        source_of(record("A", field("b", "fresh.B")), record("B", field("a", "fresh.A")))


def test_a_file_that_defines_another_name_is_refused(tmp_path: Path) -> None:
    write_sources(tmp_path, SHARED)
    (tmp_path / "Shared.avsc").rename(tmp_path / "Other.avsc")

    with pytest.raises(BadSchema, match=r"Other.avsc: .* the name Other"):
        generate(tmp_path)


def test_two_definitions_of_one_name_are_refused() -> None:
    first = record("First", field("x", record("Inner", field("a", "int"))))
    second = record("Second", field("x", record("Inner", field("b", "int"))))

    with pytest.raises(BadSchema, match=r"Second.avsc: expected one definition of fresh.Inner"):
        source_of(first, second)


def test_the_same_definition_in_two_files_is_one_class() -> None:
    inner = record("Inner", field("a", "int"))
    module = module_of(record("First", field("x", inner)), record("Second", field("x", inner)))

    assert module.First.__annotations__["x"] is module.Second.__annotations__["x"]


def test_the_command_writes_a_module_and_then_finds_it_fresh(tmp_path: Path) -> None:
    arguments = [str(write_sources(tmp_path / "avsc", SHARED)), str(tmp_path / "contracts.py")]

    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0


def test_the_command_fails_when_the_module_has_drifted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(write_sources(tmp_path / "avsc", SHARED)), str(tmp_path / "contracts.py")]
    main(arguments)
    write_sources(tmp_path / "avsc", record("Shared", field("other", "string")))

    assert main([*arguments, "--check"]) == 1
    assert "to be up to date" in capsys.readouterr().err


def test_the_command_names_the_file_and_the_field_that_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sources(tmp_path / "avsc", record("Bad", field("x", "int", default="one")))

    assert main([str(source), str(tmp_path / "contracts.py")]) == 2
    assert "Bad.avsc: fresh.Bad.x: expected a default" in capsys.readouterr().err


def test_a_directory_without_schemas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSchema, match="but found none"):
        generate(tmp_path)
