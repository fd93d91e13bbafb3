"""A log line is one line, whatever is in it, and a program can read it."""

import json
import logging
import sys

import pytest

from kapelle.cli.logs import Lines, LogFormat, LogLevel, logged_to_stderr


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("kapelle.run", logging.INFO, "run.py", 1, message, (), None)
    made.created = 1_782_907_200.5
    if fields:
        made.fields = fields
    return made


def test_a_line_of_pairs_begins_with_the_time_and_ends_with_the_fields() -> None:
    line = Lines(LogFormat.PAIRS).format(record("restoring", rows=12, rows_per_s=3.25, url="http://127.0.0.1:1/m"))

    assert line == (
        "2026-07-01T12:00:00.500Z level=info logger=kapelle.run message=restoring "
        "rows=12 rows_per_s=3.2 url=http://127.0.0.1:1/m"
    )


@pytest.mark.parametrize("text", ["two words", 'a "quote"', "two\nlines", "", "a=b", "tab\there"])
def test_a_value_that_would_break_the_line_is_quoted(text: str) -> None:
    line = Lines(LogFormat.PAIRS).format(record("said", text=text))

    assert "\n" not in line
    assert json.loads(line.partition(" text=")[2]) == text


def test_a_line_of_json_holds_the_same_as_values() -> None:
    line = Lines(LogFormat.JSON).format(record("said so", rows=12, text="two\nlines"))

    assert json.loads(line) == {
        "at": "2026-07-01T12:00:00.500Z",
        "level": "info",
        "logger": "kapelle.run",
        "message": "said so",
        "rows": 12,
        "text": "two\nlines",
    }


def test_an_error_goes_with_its_line() -> None:
    made = record("given up")
    try:
        raise ValueError("because")
    except ValueError:
        made.exc_info = sys.exc_info()

    assert "ValueError: because" in json.loads(Lines(LogFormat.JSON).format(made))["error"]


def test_warnings_of_others_have_the_same_form_and_all_else_of_them_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logged_to_stderr(LogFormat.JSON, LogLevel.DEBUG):
        logging.getLogger("asyncio").info("using a selector")
        logging.getLogger("asyncio").warning("socket.send() raised exception.")

    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["logger"] == "asyncio"


def test_only_lines_that_are_grave_enough_come_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with logged_to_stderr(LogFormat.PAIRS, LogLevel.WARNING):
        logging.getLogger("kapelle.member").info("shard counting-0 is folding")
        logging.getLogger("kapelle.member").warning("cycle given up")
    logging.getLogger("kapelle.member").warning("afterwards")

    assert capsys.readouterr().err.endswith('level=warning logger=kapelle.member message="cycle given up"\n')
