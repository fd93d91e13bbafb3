"""What users read is plain technical English: some phrases are kept out, and modules that are named exist."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kapelle.topology import exposition
from kapelle.topology.exposition import Metric
from tests.support import texts as golden
from tests.tidy import spoken
from tests.tidy.files import REPOSITORY, UNITS, name_of, project_files

# A phrase that is kept out, in lower case, and what to write instead.
PLAIN: Final = {
    "in vain": "duplicate and late announcements",
    "so many": "how many instances to show, or a number",
    "so long as": "while",
    "that is none": "that is not valid",
    "that are none": "that are not valid",
    "as far as those ask who": "for",
    "mended": "created, repaired or fixed",
    "mends": "repairs or fixes",
    "to hear of": "subscribed to",
    "nobody wanted": "no trigger or step subscribed to",
    "what there is of": "list, or the name of the thing",
    "what came of": "the outcome, the result or the effects of",
    "what comes of": "the outcome, the result or the effects of",
    "what became of": "the outcome of",
    "what was made of": "the verdict on, or the outcome of",
    "all that is wrong": "all problems",
    "who has n": "a consumer that has seen n",
    "anew": "again, or rebuilt",
    "which is no": "which is not a",
    "nobody answers": "there is no answer",
    "nobody can": "no client can",
    "told at once": "reported together",
    "half of a": "an unpaired surrogate, or the missing part",
    "the caller gave": "is configured",
    "let us": "the request was refused",
    "told apart": "distinguished",
    "it makes no sense": "it is not valid",
    "there is no such thing": "it does not exist",
    "not as things are": "not in the current state",
    "as things are": "in the current state",
    "what it needs is not so": "a precondition does not hold",
    "too small a role": "the role does not allow this",
    "by its own word": "as it reports",
    "put aside": "set aside, or written to the dead letters",
    "whom it concerns": "the subscriptions that it matches",
    "gone on with": "continued",
    "the word of": "the report of",
    "words of workers": "reports of workers",
    "lives in kafka": "runs on Kafka",
    "where to read on": "further reading",
    "flat out": "at full speed",
    "to and fro": "in alternating order",
    "again and again": "repeatedly",
    "tried again": "retried",
    "go on": "continue",
    "goes on": "continues",
    "given out": "assigned or published",
    "looked at": "examined, checked or read",
    "in one go": "at the same time",
    "at the least": "at least",
    "what was gained": "improvements",
    "nobody wants": "without a subscription, or that is not needed",
    "nobody else": "no other, or the thing that is missing",
    "anybody": "any client, reader or process",
    "everybody": "all clients, readers or processes",
    "whoever": "the caller, the user or the process",
    "who asked": "the user who made the request",
    "why, for people": "the reason, as text for people",
    "for others:": "public",
    "what a reader sees": "a reader reads",
}

HISTORY: Final = "docs/decisions/"  # decisions stay as they were taken

# A dotted name as documents write it; a part in capitals stands for something else.
MODULE: Final = re.compile(r"`(kapelle(?:\.(?![A-Z]+\b)[A-Za-z_][A-Za-z0-9_]*)+)`")

DOC: Final = re.compile(r'"doc": "((?:[^"\\]|\\.)*)"')  # a description in a contract


def pages() -> list[Path]:
    """The documents for users, authors, operators and contributors, and the changelog."""
    found = [path for path in project_files() if path.suffix == ".md"]
    return [path for path in found if not name_of(path).startswith(HISTORY)]


def metrics() -> Iterator[Metric]:
    """Every metric that a module of the product describes."""
    for name in METRIC_MODULES:
        for value in vars(importlib.import_module(name)).values():
            many = value.values() if isinstance(value, dict) else (value,)
            yield from (one for one in many if isinstance(one, Metric))


METRIC_MODULES: Final = (
    exposition.__name__,
    "kapelle.api.metrics",
    "kapelle.relay.metrics",
)


def texts() -> Iterator[tuple[str, str]]:
    """What users read, by where it stands."""
    for page in pages():
        yield name_of(page), page.read_text()
    for contract in sorted((REPOSITORY / "schemas" / "avsc").glob("*.avsc")):
        yield name_of(contract), " ".join(DOC.findall(contract.read_text()))
    yield "the command line and the HTTP API", golden.texts()
    for metric in metrics():
        yield f"help of {metric.name}", metric.help
    yield from spoken.messages()
    yield from spoken.docstrings()


def test_phrases_of_the_old_dialect_are_kept_out_of_what_users_read() -> None:
    read = [(where, " ".join(text.lower().split())) for where, text in texts()]
    found = [
        f"{where}: {phrase!r}: write {plain!r}"
        for where, text in read
        for phrase, plain in PLAIN.items()
        if re.search(rf"\b{re.escape(phrase)}(?!\w)", text)
    ]

    assert len(read) > 3_000
    assert found == []


def test_messages_log_lines_and_public_docstrings_are_read() -> None:
    said = {text for _, text in spoken.messages()}
    documented = dict(spoken.docstrings())

    assert "Expected step {} to be complete, but it is not" in said  # an exception
    assert "Workflow {} has {} queued and {} running instances" in said  # a refusal
    assert "%s: %s; checking again to confirm" in said  # a log line
    assert "sdk/kapelle/client/sync.py: Client" in documented
    assert not any(".py: _" in where for where in documented)


@pytest.mark.parametrize("phrase", ["in vain", "so many"])
def test_a_phrase_is_found_wherever_lines_break(phrase: str) -> None:
    text = phrase.replace(" ", "\n    ")

    assert re.search(rf"\b{re.escape(phrase)}\b", " ".join(text.split()))


def test_every_module_that_a_document_names_exists() -> None:
    portions = {path.parent.name for unit in UNITS for path in (REPOSITORY / unit / "kapelle").glob("*/__init__.py")}
    named = [
        (name_of(page), name)
        for page in project_files()
        if page.suffix == ".md" and not name_of(page).startswith((HISTORY, "CHANGELOG"))
        for name in MODULE.findall(page.read_text())
        if name.split(".")[1] in portions  # others are topics, groups and attributes of spans
    ]

    assert len(named) > 50
    assert [f"{page}: {name}" for page, name in named if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module has."""
    parts = name.split(".")
    for at in range(len(parts), 1, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:at]))
        except ModuleNotFoundError:
            continue
        for part in parts[at:]:
            found = getattr(found, part, None)
        return found is not None
    return False
