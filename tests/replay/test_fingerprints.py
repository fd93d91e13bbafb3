"""Every `apply` arm does what it did when it was released, or its failure says what to do."""

from typing import Any

import pytest

from tests.replay.fingerprints import arms, fingerprint, pinned

CHANGED = """apply of {name} changed: histories that were folded before would fold differently, and `kapelle verify`
would find tables that are not what their history says.

If it does something else now: leave this arm as it was, give the event a new version (a contract of its own), and write
the new arm for that. If it is only written in another way, and tests/replay/test_recorded.py and tests/property/replay
pass: pin it anew with `python -m tests.replay.fingerprints`, and say in the commit why histories fold as before."""
GONE = "{name} has no apply any more: histories that hold it could not be folded. An arm stays for ever; put it back."
NEW = "{name} is not pinned yet: when its apply is done, `python -m tests.replay.fingerprints`."


@pytest.mark.parametrize("name", sorted({*arms(), *pinned()}))
def test_an_arm_does_what_it_did_when_it_was_released(name: str) -> None:
    apply, expected = arms().get(name), pinned().get(name)

    assert apply is not None, GONE.format(name=name)
    assert expected is not None, NEW.format(name=name)
    assert fingerprint(apply) == expected, CHANGED.format(name=name)


LIMIT = 3


def _double(number: int) -> int:
    return number * 2


def _first(message: Any, state: Any) -> None:
    """Says something."""
    for one in message:  # and more
        state.put(one, _double(one) + LIMIT)


def _twice(value: int) -> int:
    return value * 2


def _moved(event: Any, tables: list[Any]) -> None:
    for each in event:
        tables.put(each, _twice(each) + LIMIT)  # type: ignore[attr-defined]  # it is never called


def _thrice(value: int) -> int:
    return value * 3


def _changed_below(event: Any, tables: Any) -> None:
    for each in event:
        tables.put(each, _thrice(each) + LIMIT)


def test_other_names_comments_and_annotations_make_no_other_fingerprint() -> None:
    assert fingerprint(_first) == fingerprint(_moved)


def test_a_change_in_what_an_arm_calls_is_a_change_of_the_arm() -> None:
    assert fingerprint(_first) != fingerprint(_changed_below)


def test_another_value_of_a_constant_is_a_change_of_the_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(_first)

    monkeypatch.setitem(_first.__globals__, "LIMIT", 4)

    assert fingerprint(_first) != before
