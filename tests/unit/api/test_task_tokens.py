"""Task tokens: an answer that was meant for another deployment counts for nothing here."""

from pathlib import Path
from typing import Any

from tests.integration.api.places import embedded_place, step


def first_task(directory: Path, request_id: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first task of a server that has just begun, and what becomes of an answer with a token from elsewhere."""
    with embedded_place(directory) as place:
        place.push(step("work", "job"), workflow_id="etl")
        place.start("etl", **({"request_id": request_id} if request_id else {}))
        task = place.take("job")[0]
        return task, place.report({**task, "token": "0" * 32}, "SUCCEEDED")["results"][0]


def test_the_first_tokens_of_two_fresh_servers_differ(tmp_path: Path) -> None:
    tokens = {first_task(tmp_path / str(number), None)[0]["token"] for number in range(2)}
    named = {first_task(tmp_path / f"named-{number}", "mine")[0]["token"] for number in range(2)}

    assert len(tokens | named) == 4


def test_an_answer_with_another_token_is_refused(tmp_path: Path) -> None:
    _, answer = first_task(tmp_path, None)

    assert answer["accepted"] is False
    assert "another attempt" in answer["reason"]
