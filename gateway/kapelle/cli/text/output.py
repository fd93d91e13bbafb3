"""Where words go: data to stdout, as it is; everything said about it to stderr."""

import shlex
import sys
from enum import StrEnum
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text


class Form(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSON = "json"


def data(text: str) -> None:
    """The answer itself."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def json(value: Any) -> None:
    """The answer as JSON, indented: people read it too."""
    data(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say(text: str, style: str = "dim") -> None:
    """A remark on the answer."""
    _stderr().print(Text(text, style), soft_wrap=True)


def error(text: str) -> None:
    """Why there is no answer: one paragraph."""
    _stderr().print(Text.assemble(("error: ", "bold red"), text), soft_wrap=True)


def command(*words: str | int) -> str:
    """A command to be copied, whatever is in its words."""
    return shlex.join(["kapelle", *(str(word) for word in words)])


def counted(count: int, noun: str) -> str:
    """A number with its noun: no letters, 1 letter, 2 letters."""
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _stderr() -> Console:
    # Made when it is needed: tests and shells put other files in place of stderr.
    return Console(stderr=True, highlight=False)


def told(done: msgspec.Struct, form: Form, text: str) -> None:
    """Tell what came of a change."""
    if form is Form.JSON:
        json(msgspec.to_builtins(done))
        return
    data(text)
    message = getattr(done, "message", None)
    if message:
        say(message)
