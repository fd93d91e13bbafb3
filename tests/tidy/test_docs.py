"""What the documents say can be done, can be done; what can be done is documented."""

import functools
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup

from tests.tidy.files import REPOSITORY, UNITS, name_of, project_files

CODE_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELLS = ("", "sh", "console", "bash", "text")
INDENTED = re.compile(r"^    \$? ?((?:make|kapelle) .*)$", re.MULTILINE)
INLINE = re.compile(r"`((?:make|kapelle) [^`\n]+)`")
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
PLACEHOLDER = re.compile(r"^[<\[(…A-Z-]")


def documents() -> list[Path]:
    return [path for path in project_files() if path.suffix == ".md"]


def commands(document: Path) -> Iterator[list[str]]:
    """The `make` and `kapelle` commands that a document gives, in words; alternatives `a|b` give one command each."""
    text = document.read_text()
    blocks = [block for kind, block in CODE_BLOCK.findall(text) if kind in SHELLS]
    found = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    found += INDENTED.findall(text) + INLINE.findall(text)
    for line in found:
        if re.match(r"(make|kapelle) ", line):
            words = shlex.split(line.split(" #")[0], posix=False)
            spelt = next((word for word in words if "|" in word and word != "|"), "")
            yield from (
                [w if w != spelt else choice for w in words] for choice in (spelt.split("|") if spelt else [""])
            )


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


@functools.cache
def command_line() -> Any:
    return typer.main.get_command(importlib.import_module("kapelle.cli.all_commands").cli)


def kapelle_refuses(words: list[str]) -> bool:
    """Whether the command line has no such command, or the command no such option."""
    found: Any = command_line()
    for at, word in enumerate(words):
        if not isinstance(found, TyperGroup):
            known = {"--help", *(name for one in found.params for name in (*one.opts, *one.secondary_opts))}
            return any(option not in known for option in options(words[at:]))
        if PLACEHOLDER.match(word):
            return False
        if word not in found.commands:
            return True
        found = found.commands[word]
    return False


def options(words: list[str]) -> Iterator[str]:
    """The options among the words of a command, up to a pipe or a redirection of a shell."""
    for word in words:
        if word in ("|", ">", "<", "&", "&&"):
            return
        if re.match(r"--?[A-Za-z]", word):
            yield word.partition("=")[0]


def test_every_make_command_in_the_documents_exists() -> None:
    targets = make_targets()
    unknown = [
        f"{name_of(document)}: {' '.join(words)}"
        for document in documents()
        for words in commands(document)
        if words[0] == "make" and any(w not in targets for w in words[1:] if not PLACEHOLDER.match(w) and "=" not in w)
    ]

    assert unknown == []


def test_every_kapelle_command_in_the_documents_exists() -> None:
    unknown = [
        f"{name_of(document)}: {' '.join(words)}"
        for document in documents()
        for words in commands(document)
        if words[0] == "kapelle" and kapelle_refuses(words[1:])
    ]

    assert unknown == []


def test_every_make_target_is_documented() -> None:
    told = {
        word for document in documents() for words in commands(document) if words[0] == "make" for word in words[1:]
    }

    assert make_targets() - told == set()


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{name_of(document)}: {target}"
        for document in documents()
        for target in LINK.findall(document.read_text())
        if not (document.parent / target).exists()
    ]

    assert broken == []


def test_every_unit_has_a_readme_that_states_its_law() -> None:
    lawless = [unit for unit in UNITS if "\nThe law:\n" not in (REPOSITORY / unit / "README.md").read_text()]

    assert lawless == []


def test_decisions_are_numbered_without_gaps_and_say_where_they_stand() -> None:
    found = sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))

    assert [path.name[:5] for path in found] == [f"{number:04}-" for number in range(1, len(found) + 1)]
    for path in found:
        text = path.read_text()
        assert text.startswith(f"# {int(path.name[:4])}. "), f"{path.name} must open with its number"
        headings = [h for h in ("## Context", "## Decision", "## Refused") if h not in text]
        assert headings == [], f"{path.name} lacks {headings}"
        assert re.search(r"^Status: (proposed|accepted|superseded by \d{4})", text, re.MULTILINE), path.name
