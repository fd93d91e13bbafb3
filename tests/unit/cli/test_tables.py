"""Tables, durations, parameters and timelines as people see them, in and out of a terminal."""

import io

import pytest
from rich.console import Console

from kapelle.cli.errors import BadParam
from kapelle.cli.params import given
from kapelle.cli.text import tables
from kapelle.cli.text.timelines import show_timeline
from kapelle.client import TimelineEntry

HOUR_MS = 3_600_000


def test_columns_are_as_wide_as_what_is_in_them_and_lines_have_no_blanks_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables.show(("step", "status", "what"), [("load", "SUCCEEDED", None), ("a-long-name", "FAILED", "[red]why[/red]")])

    assert capsys.readouterr().out == (
        "STEP         STATUS     WHAT\nload         SUCCEEDED\na-long-name  FAILED     [red]why[/red]\n"
    )


def test_a_cell_has_one_line_and_names_stay_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show(("run",), [(1, "first\nsecond", "")], names=("Load", "load"))

    assert capsys.readouterr().out == "RUN  Load     load\n1    first …\n"


def test_further_lines_of_a_pair_stand_below_its_first(capsys: pytest.CaptureFixture[str]) -> None:
    tables.pairs([("reason", "first\nsecond"), ("run", 2)])

    assert capsys.readouterr().out == "reason  first\n        second\nrun     2\n"


def test_a_long_line_is_not_broken_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show(("what",), [("x" * 500,)])

    assert len(capsys.readouterr().out.splitlines()) == 2


def test_pairs_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    tables.pairs([("workflow", "etl"), ("reason", None), ("run", 2)])

    assert capsys.readouterr().out == "workflow  etl\nrun       2\n"


def test_a_status_has_its_colour_in_a_terminal_and_none_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(**environment: str) -> str:
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, _environ={"TERM": "xterm-256color", **environment})
        monkeypatch.setattr(tables, "stdout", lambda: console)
        tables.show(("status",), [("FAILED",)])
        return file.getvalue()

    assert "\x1b[31mFAILED" in shown()
    assert "\x1b[31m" not in shown(NO_COLOR="1")


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "text"),
    [
        (None, 5, ""),
        (5, None, ""),
        (0, 12, "12 ms"),
        (0, 1_500, "1.5 s"),
        (0, 61_000, "1 min 1 s"),
        (0, 25 * HOUR_MS, "25 h 0 min"),
    ],
)
def test_durations_are_told_in_the_unit_that_fits(start_ms: int | None, end_ms: int | None, text: str) -> None:
    assert tables.lasted(start_ms, end_ms) == text


def test_parameters_are_json_or_else_text() -> None:
    words = [
        "n=5",
        "text=hello",
        'quoted="5"',
        "list=[1, 2]",
        "flag=true",
        "day=2026-07-01",
        "empty=",
        "none=null",
        "eq=a=b",
    ]

    assert given(words) == {
        "n": 5,
        "text": "hello",
        "quoted": "5",
        "list": [1, 2],
        "flag": True,
        "day": "2026-07-01",
        "empty": "",
        "none": "null",
        "eq": "a=b",
    }


def test_a_parameter_without_a_name_is_refused() -> None:
    with pytest.raises(BadParam, match="Expected --param NAME=VALUE, but found '=1'"):
        given(["=1"])


def test_a_timeline_has_a_heading_for_each_run_and_tells_attempts_and_iterations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_timeline(
        [
            TimelineEntry(0, "STATUS", 1, status="CREATED"),
            TimelineEntry(1, "STATUS", 1, "load", 2, 1, status="RUNNING", worker="w-1"),
            TimelineEntry(2, "LOG", 1, "load", 2, 1, message="half done"),
            TimelineEntry(3, "ACTION", 1, action="STOP", author="ann", message="enough"),
            TimelineEntry(4, "STATUS", 2, "load", 1, 3, status="FAILED", message="why"),
        ]
    )

    lines = [line.partition("  ")[2] or line for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "run 1",
        "·                 CREATED",
        "load #2           RUNNING  [w-1]",
        "load #2           half done",
        "·                 STOP by ann  enough",
        "run 2",
        "load iteration 3  FAILED  why",
    ]
