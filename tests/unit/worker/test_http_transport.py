"""Tasks and words over HTTP, against an API of a few lines."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kapelle.api.settings import BODY_BYTES_MAX
from kapelle.schemas.contracts import Criticality, Report
from kapelle.worker import Answer, HttpTransport, TaskReport, TransportRefused, TransportUnavailable
from tests.unit.worker.samples import task

GIVEN = {
    "token": "t1",
    "workflow_id": "etl",
    "instance_id": 1,
    "run_id": 1,
    "step_id": "load",
    "attempt": 2,
    "iteration": 1,
    "type": "load",
    "sub_type": None,
    "params": {"rows": 3, "share": 0.5},
    "idempotency_key": "key",
    "criticality": "HIGH",
    "lease_ms": 30_000,
    "deadline_at_ms": 4_000_000_000_000,
    "something": "that a later server may add",
}


class Api:
    """Answers with what it was told to, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[httpx.Headers] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path, json.loads(request.content)))
        self.headers.append(request.headers)
        answer = self.answers.pop(0) if self.answers else {"results": [], "cancelled": []}
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def opened(api: Callable[[httpx.Request], httpx.Response], token: str | None = None) -> HttpTransport:
    transport = HttpTransport("http://127.0.0.1:8080/", token, transport=httpx.MockTransport(api))
    transport.open("worker-1", ["load", "save"])
    return transport


def test_tasks_are_polled_for_with_what_there_is_room_for() -> None:
    api = Api({"tasks": [GIVEN], "cancelled": []})

    (taken,) = opened(api, "secret").take(200, 0.5)

    asked = {"worker": "worker-1", "types": ["load", "save"], "max": 100, "wait_ms": 500}
    assert api.asked == [("/api/v3/tasks/poll", asked)]
    assert api.headers[0]["authorization"] == "Bearer secret"
    assert (taken.token, taken.attempt, taken.criticality) == ("t1", 2, Criticality.HIGH)
    assert json.loads(taken.params) == {"rows": 3, "share": 0.5}


def test_without_room_nothing_is_asked_for() -> None:
    api = Api()

    assert opened(api).take(0, 1.0) == []
    assert api.asked == []


def test_words_are_sent_as_the_api_takes_them_and_answered_one_by_one() -> None:
    results = [{"token": "token-1", "accepted": True}, {"token": "token-2", "accepted": False, "reason": "too late"}]
    api = Api({"results": results, "cancelled": []})

    answers = opened(api).report(
        [
            TaskReport(task(1), Report.SUCCEEDED, "", '{"rows":{"type":"LONG","value":1}}', "", '[{"name":"loaded"}]'),
            TaskReport(task(2), Report.HEARTBEAT, "hi"),
        ]
    )

    assert answers == [Answer("token-1", True), Answer("token-2", False, "too late")]
    first, second = api.asked[0][1]["reports"]
    assert first == {
        "token": "token-1",
        "workflow_id": "etl",
        "instance_id": 1,
        "step_id": "load",
        "report": "SUCCEEDED",
        "outputs": {"rows": {"type": "LONG", "value": 1}},
        "signals": [{"name": "loaded"}],
    }
    assert (second["report"], second["message"]) == ("HEARTBEAT", "hi")


def test_words_that_one_request_cannot_hold_are_sent_in_several() -> None:
    large = '{"text":{"type":"STRING","value":"' + "x" * 400_000 + '"}}'
    sizes: list[int] = []

    def api(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        reports = json.loads(request.content)["reports"]
        return httpx.Response(200, json={"results": [{"token": one["token"], "accepted": True} for one in reports]})

    answers = opened(api).report([TaskReport(task(number), Report.SUCCEEDED, "", large) for number in range(1, 6)])

    assert [answer.token for answer in answers] == [f"token-{number}" for number in range(1, 6)]
    assert len(sizes) == 3
    assert max(sizes) < BODY_BYTES_MAX


def test_cancellations_come_with_every_answer_and_are_asked_for_when_there_is_none() -> None:
    api = Api({"tasks": [], "cancelled": ["t1"]})
    transport = opened(api)

    transport.take(1, 0.0)
    heard = transport.cancellations()
    idle = opened(other := Api({"results": [], "cancelled": ["t2"]})).cancellations()

    assert (heard, idle) == ([("t1", "")], [("t2", "")])
    assert [path for path, _ in api.asked + other.asked] == ["/api/v3/tasks/poll", "/api/v3/tasks/reports"]


@pytest.mark.parametrize(
    "answer", [httpx.Response(503), httpx.Response(500), httpx.Response(429), httpx.ConnectError("refused")]
)
def test_a_server_that_is_away_is_tried_again(answer: Any) -> None:
    with pytest.raises(TransportUnavailable):
        opened(Api(answer)).take(1, 0.0)


@pytest.mark.parametrize(
    "answer", [httpx.Response(401), httpx.Response(403), httpx.Response(404), httpx.Response(200, text="<html>")]
)
def test_a_server_that_does_not_let_us_in_or_is_not_kapelle_ends_the_worker(answer: Any) -> None:
    with pytest.raises(TransportRefused):
        opened(Api(answer)).take(1, 0.0)


def test_a_refusal_is_told_in_the_words_of_the_server() -> None:
    problem = {"title": "Forbidden", "detail": "Expected the role operator, but found viewer", "errors": ["a", "b"]}

    with pytest.raises(TransportRefused) as refused:
        opened(Api(httpx.Response(403, json=problem))).take(1, 0.0)

    assert str(refused.value) == (
        "Expected http://127.0.0.1:8080/api/v3/tasks/poll to accept the call, but it answered 403: "
        "Expected the role operator, but found viewer; a; b (a worker needs a token of the role operator)"
    )


@pytest.mark.parametrize("token", ["\xfc", "a\nb", " "])
def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(TransportRefused) as refused:
        HttpTransport("http://127.0.0.1:8080", token)

    assert str(refused.value) == "Expected a token of visible ASCII characters, but it has other characters"


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://host", "http://[::1"])
def test_a_wrong_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(TransportRefused, match=r"Expected a URL such as http://127\.0\.0\.1:8080"):
        HttpTransport(url)
