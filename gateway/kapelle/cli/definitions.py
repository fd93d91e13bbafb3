"""Definitions from files: JSON or YAML by the name of the file, or from standard input."""

import sys
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from kapelle.cli.errors import BadDefinition, BadFile

STDIN: Final = "-"
SUFFIXES: Final = {".json": False, ".yaml": True, ".yml": True}
BYTES_MAX: Final = 1_000_000  # what the server takes

File = Annotated[str, typer.Argument(metavar="FILE|-", help="Definition file: .json, .yaml or .yml. - is stdin.")]


class Written(msgspec.Struct, frozen=True):
    """A definition as somebody wrote it."""

    name: str
    text: str
    is_yaml: bool


def read(name: str) -> Written:
    """A definition from a file, or from stdin, where JSON is told from YAML by its first brace."""
    try:
        if name == STDIN:
            text = sys.stdin.buffer.read(BYTES_MAX + 1).decode()
            return Written("stdin", _bounded(text, "stdin"), not text.lstrip().startswith("{"))
        path = Path(name)
        if path.suffix.lower() not in SUFFIXES:
            raise BadFile(f"Expected a file that ends in .json, .yaml or .yml, but found {name!r}")
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadFile(f"Expected {name} to be UTF-8, but {error}") from error
    except OSError as error:
        raise BadFile(f"Expected a definition in {name}, but it cannot be read: {error.strerror}") from error
    return Written(name, _bounded(text, name), SUFFIXES[path.suffix.lower()])


def _bounded(text: str, name: str) -> str:
    size = len(text.encode())
    if size > BYTES_MAX:
        raise BadFile(f"Expected at most {BYTES_MAX:,} bytes in {name}, but found more")
    return text


def check(written: Written) -> str:
    """Check a definition without a server, and give its workflow's id."""
    from kapelle.processors.definitions import DefinitionRefused, parse_push, yaml_push  # noqa: PLC0415 - slow

    try:
        push = parse_push(yaml_push(written.text) if written.is_yaml else written.text, runnable=True)
    except DefinitionRefused as refused:
        problems = [str(problem) for problem in refused.problems]
        count = f"{len(problems)} problem{'s' * (len(problems) != 1)}"
        raise BadDefinition(
            "\n  ".join([f"Expected a definition that can be run in {written.name}, but found {count}", *problems])
        ) from refused
    return push.workflow.id
