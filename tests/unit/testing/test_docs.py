"""Every example of docs/testing.md runs, as the tests that they are."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kapelle.testing import Engine, assert_step

PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


def examples() -> dict[str, Callable[..., Any]]:
    """The test functions of the page, by their names."""
    found: dict[str, Callable[..., Any]] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        names: dict[str, Any] = {"__name__": "docs_testing"}
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
        found |= {
            name: value for name, value in names.items() if name.startswith("test_") and inspect.isfunction(value)
        }
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_an_example_of_the_page_holds(name: str, engine: Engine) -> None:
    EXAMPLES[name](engine)


def test_the_failure_that_the_page_shows_is_the_one_that_a_user_sees(engine: Engine) -> None:
    page = PAGE.read_text()
    shown = re.search(r"^```text\nAssertionError: (.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    approval = EXAMPLES["test_a_yes_pays"].__globals__["APPROVAL"]
    run = engine.start(engine.push(approval))
    engine.task(run, "ask").begin()
    engine.task(run, "ask").fail("out of office")

    with pytest.raises(AssertionError) as raised:
        assert_step(run, "ask", "SUCCEEDED")

    assert str(raised.value).strip() == shown.group(1).strip()
