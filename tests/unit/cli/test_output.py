"""Results as text or JSON, and summaries in plain words."""

import json
from enum import StrEnum

import msgspec
import pytest

from kapelle.cli.commands.topics import summary
from kapelle.cli.text import output
from kapelle.cli.text.output import Form
from kapelle.topology.kafka.topics import Change, Do


class Order(msgspec.Struct):
    """A result."""

    number: int


class Drawn(StrEnum):
    """Forms of a command that can draw."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"


def as_text(order: Order) -> None:
    output.data(f"order {order.number}")


def test_a_result_is_written_in_the_form_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(Order(7), Form.TEXT, as_text)
    output.show(Order(7), Drawn.DOT, as_text, dot=lambda order: output.data(f"digraph {order.number}"))
    assert capsys.readouterr().out == "order 7\ndigraph 7\n"

    output.show(Order(7), Form.JSON, as_text)
    assert json.loads(capsys.readouterr().out) == {"number": 7}


def test_results_that_follow_each_other_are_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        output.show_line(Order(number), Form.JSON, as_text)

    assert capsys.readouterr().out == '{"number":1}\n{"number":2}\n'


@pytest.mark.parametrize("form", Form)
def test_each_result_is_written_once_and_all_are_returned(form: Form, capsys: pytest.CaptureFixture[str]) -> None:
    found = output.show_each(iter([Order(1), Order(2)]), form, as_text)

    assert found == [Order(1), Order(2)]
    written = capsys.readouterr().out
    expected = "order 1\norder 2\n" if form is Form.TEXT else [{"number": 1}, {"number": 2}]
    assert (written if form is Form.TEXT else json.loads(written)) == expected


@pytest.mark.parametrize(
    ("done", "told"),
    [
        ((), "nothing to do"),
        ((Do.CREATE, Do.CREATE), "2 topics created"),
        ((Do.CONFIGURE,), "1 topic updated"),
        ((Do.CREATE, Do.CONFIGURE), "1 topic created, 1 topic updated"),
    ],
    ids=str,
)
def test_what_was_done_to_topics_is_counted_by_what_it_was(done: tuple[Do, ...], told: str) -> None:
    assert summary([Change(do, "shop.orders", 1, {}) for do in done]) == told
