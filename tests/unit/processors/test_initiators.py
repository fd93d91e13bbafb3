"""What is read of an initiator, whatever the caller of a start has written into it."""

import json
from typing import Any

import pytest

from kapelle.processors.initiators import NOBODY, TEXT_CACHED_CHARS_MAX, Initiator, initiator_of

WHOLE: dict[str, Any] = {
    "type": "signal",
    "timezone": "Asia/Tokyo",
    "trigger_uuid": "t",
    "signal_id_map": {"a": 1, "b": 2},
    "last_signal": "b",
    "traceparent": "00-1-2-01",
}


def read(**changed: Any) -> Initiator:
    return initiator_of(json.dumps({**WHOLE, **changed}))


def test_every_member_is_read() -> None:
    found = read(params={"x": 1}, more="of anything")

    assert {name: getattr(found, name) for name in WHOLE} == WHOLE
    assert bytes(found.params) == b'{"x": 1}'
    assert (found.kind, found.signal) == ("SIGNAL", ("b", 2))


@pytest.mark.parametrize("member", [name for name in WHOLE if name != "timezone"])
@pytest.mark.parametrize("value", [5, ["x"], {"x": "y"}])
def test_a_member_of_another_type_is_absent_and_the_others_are_read(member: str, value: Any) -> None:
    found = read(**{member: value})

    wanted = {**WHOLE, member: getattr(NOBODY, member)}
    assert {name: getattr(found, name) for name in WHOLE} == wanted


@pytest.mark.parametrize("text", ["", "nothing", "[]", "5", "null", '{"type":', '"\ud800"'])
def test_a_text_that_is_no_object_says_nothing(text: str) -> None:
    assert initiator_of(text) == NOBODY


def test_long_texts_are_read_too() -> None:
    assert read(more="x" * TEXT_CACHED_CHARS_MAX).kind == "SIGNAL"


@pytest.mark.parametrize(
    ("changed", "signal"),
    [
        ({"last_signal": ""}, ("a", 1)),
        ({"last_signal": "c"}, ("a", 1)),
        ({"trigger_uuid": ""}, None),
        ({"signal_id_map": {}}, None),
        ({"type": "MANUAL"}, None),
    ],
)
def test_a_trigger_fired_with_the_signal_that_came_last(changed: dict[str, Any], signal: Any) -> None:
    assert read(**changed).signal == signal
