"""Every example of docs/client.md runs against a server."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.places import embedded_place
from tests.tidy.files import REPOSITORY

PAGE = REPOSITORY / "docs" / "client.md"


def test_the_examples_of_the_page_run_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "docs_client"}
    with embedded_place(tmp_path) as place:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
            code = block.replace("http://127.0.0.1:8080", place.url)
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - our own page

    said = capsys.readouterr().out
    assert "wait SUCCEEDED" in said
    assert "Expected instance greeting/404 to exist, but it does not" in said
    assert "workflow.steps" in said
