"""The record that a message came from is named as operators name it."""

import pytest

from kapelle.topology.deadletters import origin_of


@pytest.mark.parametrize(
    ("message_id", "record"),
    [
        ("w.ticks-0-1", "w.ticks-0@1"),
        ("counting/w.ticks-0-1#3", "w.ticks-0@1"),
        ("runs/kapelle.runs.commands-3-1234#1#2", "kapelle.runs.commands-3@1234"),
        ("publisher.steps/my-prefix.runs.events-12-0#1", "my-prefix.runs.events-12@0"),
        ("workflows-0-timer-1700000000000-3-etl-due-1-2", None),
        ("workflows-0-timer-1700000000000-3-etl-due-1-2#4", None),
        ("my-timer-prefix.runs.events-3-17", "my-timer-prefix.runs.events-3@17"),
        ("runs-0-timer-1700000000000-5-etl/1-lease-1-2#1", None),
        ("x", None),
    ],
)
def test_the_record_is_told_from_the_id_of_all_that_comes_of_it(message_id: str, record: str | None) -> None:
    assert origin_of(message_id) == record
