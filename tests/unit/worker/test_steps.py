"""How a task's parameters reach a function."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from kapelle.worker import BadParameter, BadStep, Context
from kapelle.worker.steps import Step
from tests.unit.worker.samples import task


class Table(BaseModel):
    name: str
    columns: list[str] = []


@dataclass
class Span:
    first: int
    last: int


def arguments(function: Callable[..., Any], **params: Any) -> dict[str, Any]:
    given = task(params=params)
    return Step("load", function).arguments(given.params, Context(given))


def test_parameters_are_filled_by_name_and_others_are_left_out() -> None:
    def load(table: str, rows: int) -> None: ...

    found = arguments(load, rows=3, table="events", more=True)

    assert found == {"table": "events", "rows": 3}


def test_a_parameter_without_annotation_is_given_as_it_is() -> None:
    def load(rows) -> None: ...  # type: ignore[no-untyped-def]

    assert arguments(load, rows="3") == {"rows": "3"}


def test_values_are_converted_to_what_the_annotation_says() -> None:
    def load(rows: int, table: Table, span: Span, share: Annotated[float, Field(le=1)]) -> None: ...

    found = arguments(load, rows="3", table={"name": "events"}, span={"first": 1, "last": 2}, share=1)

    assert found == {"rows": 3, "table": Table(name="events"), "span": Span(1, 2), "share": 1.0}


def test_a_default_stands_in_for_what_is_missing() -> None:
    def load(rows: int = 7) -> None: ...

    assert arguments(load) == {}


def test_the_context_is_given_to_the_parameter_that_is_annotated_with_it() -> None:
    def load(rows: int, ctx: Context) -> None: ...

    found = arguments(load, rows=1)

    assert found["ctx"].idempotency_key == "etl/1/1/load/1"
    assert found["ctx"].params == {"rows": 1}


def test_annotations_that_are_text_are_resolved() -> None:
    def load(rows: "int", ctx: "Context") -> None: ...

    assert arguments(load, rows="1")["rows"] == 1


def test_a_parameter_with_two_stars_gets_all_that_nobody_asked_for() -> None:
    def load(rows: int, **rest: Any) -> None: ...

    assert arguments(load, rows=1, table="a", day=2) == {"rows": 1, "table": "a", "day": 2}


def test_a_method_a_partial_and_a_callable_object_are_steps_too() -> None:
    class Loader:
        def load(self, rows: int) -> None: ...

        async def __call__(self, rows: int) -> None: ...

    def of(table: str, rows: int) -> None: ...

    assert arguments(Loader().load, rows="1") == {"rows": 1}
    assert arguments(Loader(), rows="1") == {"rows": 1}
    assert Step("load", Loader()).is_async
    assert arguments(functools.partial(of, table="a"), rows="1") == {"rows": 1}


def test_a_missing_parameter_is_named_with_what_was_expected() -> None:
    def load(rows: int) -> None: ...

    with pytest.raises(BadParameter) as caught:
        arguments(load)

    assert str(caught.value) == "Expected parameter 'rows' to be int, but found none: the step does not define it"


def test_a_parameter_of_the_wrong_type_is_named_with_what_was_found() -> None:
    def load(table: Table) -> None: ...

    with pytest.raises(BadParameter) as caught:
        arguments(load, table={"columns": []})

    assert (
        str(caught.value) == "Expected parameter 'table' to be Table, but found {'columns': []} (name: Field required)"
    )


def test_a_long_value_is_shown_in_part() -> None:
    def load(rows: int) -> None: ...

    with pytest.raises(BadParameter) as caught:
        arguments(load, rows="x" * 10_000)

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("kind", ["positional", "variable"])
def test_a_function_that_cannot_be_called_by_name_is_refused_at_once(kind: str) -> None:
    def positional(rows: int, /) -> None: ...

    def variable(*rows: int) -> None: ...

    with pytest.raises(BadStep, match=r"'rows'.*can only be given by position"):
        Step("load", {"positional": positional, "variable": variable}[kind])


def test_an_annotation_that_nobody_can_resolve_is_refused_at_once() -> None:
    def load(rows: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(BadStep, match="Nowhere"):
        Step("load", load)


def test_an_annotation_that_pydantic_does_not_know_is_refused_at_once() -> None:
    class Opaque: ...

    def load(rows: Opaque) -> None: ...

    with pytest.raises(BadStep, match="'rows' of step 'load' to have a type that pydantic knows"):
        Step("load", load)


def test_an_empty_type_is_refused_at_once() -> None:
    def load() -> None: ...

    with pytest.raises(BadStep, match="found an empty string"):
        Step("", load)
