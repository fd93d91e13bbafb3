"""Output of commands: results to stdout, messages to stderr."""

import shlex
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.text import Text

T = TypeVar("T")


class Form(StrEnum):
    """How a result is written. A command with more forms has an enum of its own, with these two among them."""

    TEXT = "text"
    JSON = "json"


def data(text: str) -> None:
    """The answer itself."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def json(value: object) -> None:
    """The answer as JSON, indented: people read it too."""
    data(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def json_line(value: object) -> None:
    """A result as JSON on one line, for results that come one after the other."""
    data(msgspec.json.encode(value).decode())


def show(result: T, form: StrEnum, text: Callable[[T], None], **others: Callable[[T], None]) -> None:
    """Write a result in the form that was asked for. `others` has the writers of further forms, by their values."""
    writers: dict[str, Callable[[T], None]] = {"text": text, "json": json, **others}
    writers[form.value](result)


def show_line(result: T, form: Form, text: Callable[[T], None]) -> None:
    """Write one of many results, as text or as one line of JSON."""
    show(result, form, text, json=json_line)


def show_each(results: Iterable[T], form: Form, text: Callable[[T], None]) -> list[T]:
    """Write results, as text each when it is there, as JSON all at the end. Returns them."""
    shown: list[T] = []

    def written(results: Iterable[T]) -> None:
        for result in results:
            shown.append(result)
            text(result)

    def collected(results: Iterable[T]) -> None:
        shown.extend(results)
        json(shown)

    show(results, form, written, json=collected)
    return shown


def show_outcome(done: msgspec.Struct, form: Form, text: str) -> None:
    """Write what a change led to: the text, and the message of the server if there is one."""

    def written(done: msgspec.Struct) -> None:
        data(text)
        message = getattr(done, "message", None)
        if message:
            say(message)

    show(done, form, written)


def say(text: str, style: str = "dim") -> None:
    """A remark on the answer."""
    stderr().print(Text(text, style), soft_wrap=True)


def error(text: str) -> None:
    """Why there is no answer: one paragraph."""
    stderr().print(Text.assemble(("error: ", "bold red"), text), soft_wrap=True)


def command(*words: str | int) -> str:
    """A command to be copied, whatever is in its words."""
    return shlex.join(["kapelle", *(str(word) for word in words)])


def counted(count: int, noun: str) -> str:
    """A number with its noun: no letters, 1 letter, 2 letters."""
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def stderr() -> Console:
    """The console of remarks and errors."""
    # Made when it is needed: tests and shells put other files in place of stderr.
    return Console(stderr=True, highlight=False)
