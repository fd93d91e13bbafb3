"""`kapelle workflow`, `run` and `step` on a real server: what people are told of workflows, starts and failures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.main import cli
from tests.integration.api.places import Place, embedded_place

AT_ONCE = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 3_600}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def kapelle(place: Place, *words: str, given: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [*words, "--url", place.url], prog_name="kapelle", input=given)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (
            ("signal", "announce", "x", "--payload", '{"a": NaN}'),
            2,
            "Expected --payload to be JSON, but NaN is no JSON",
        ),
        (("run", "start", "any", "-p", "x=1e400"), 2, "Expected a finite number for parameter 'x', but found inf"),
    ],
)
def test_numbers_that_json_does_not_have_are_refused(
    place: Place, words: tuple[str, ...], code: int, reason: str
) -> None:
    assert reason in kapelle(place, *words, code=code).stderr


def test_what_python_alone_takes_for_a_number_is_text(place: Place) -> None:
    name = place.push()

    kapelle(place, "run", "start", name, "-p", "x=NaN")

    found: Any = place.get(f"/workflows/{name}/instances/1")
    assert found["run_params"]["x"] == {"type": "STRING", "value": "NaN"}
