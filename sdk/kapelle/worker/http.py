"""Tasks over the HTTP API: for workers that do not reach the broker.

POST /api/v3/tasks/poll       tasks, each leased to this worker already; tokens that were cancelled
POST /api/v3/tasks/reports    reports, and the result of each
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import httpx
import msgspec

from kapelle.schemas.contracts import Criticality, Report, Task
from kapelle.worker.errors import TransportRefused, TransportUnavailable
from kapelle.worker.transport import Answer, TaskReport
from kapelle.worker.urls import shown

ASK_EVERY_S: Final = 1.0  # how often a worker that neither takes nor reports asks for cancellations
CALL_S: Final = 10.0
TASKS_MAX: Final = 100
BODY_BYTES: Final = 900_000  # of one request: a server takes a million, and one report has less than this
DETAIL_CHARS_MAX: Final = 500
NOT_LET_IN: Final = frozenset({401, 403})
RETRIED: Final = frozenset({408, 425, 429})  # and every 5xx: the server, not the call, is the matter

T = TypeVar("T")


class GivenTask(msgspec.Struct, frozen=True):
    """A task as the API gives it."""

    token: str
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt: int
    iteration: int
    type: str
    idempotency_key: str
    lease_ms: int
    deadline_at_ms: int
    params: msgspec.Raw
    sub_type: str | None = None
    criticality: str = Criticality.MEDIUM.value
    at_ms: int = 0

    def task(self) -> Task:
        known = Criticality.__members__.get(self.criticality, Criticality.OTHER)
        return Task(**msgspec.structs.asdict(self) | {"params": bytes(self.params).decode(), "criticality": known})


class Polled(msgspec.Struct, frozen=True):
    """The answer to a poll."""

    tasks: list[GivenTask]
    cancelled: list[str] = []


class Result(msgspec.Struct, frozen=True):
    """The result of one report."""

    token: str
    accepted: bool | None = None
    reason: str | None = None


class Reported(msgspec.Struct, frozen=True):
    """The answer to reports."""

    results: list[Result]
    cancelled: list[str] = []


class ReportBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report as the API takes it."""

    token: str
    workflow_id: str
    instance_id: int
    step_id: str
    report: Report
    message: str = ""
    outputs: msgspec.Raw | None = None
    log: str = ""
    signals: msgspec.Raw | None = None


class ProblemBody(msgspec.Struct, frozen=True):
    """Why a call was not taken."""

    detail: str
    errors: list[str] = []


class HttpTransport:
    """The transport over the HTTP API. `token` is a bearer token with the role operator."""

    def __init__(self, url: str, token: str | None = None, *, transport: httpx.BaseTransport | None = None) -> None:
        if token and not (token.isascii() and token.isprintable() and token.strip()):
            raise TransportRefused("Expected a token of visible ASCII characters, but it has other characters")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            base = httpx.URL(url.rstrip("/") + "/api/v3/")
        except httpx.InvalidURL as error:
            raise TransportRefused(
                f"Expected a URL such as http://127.0.0.1:8080, but found {shown(url)!r}: {error}"
            ) from error
        if base.scheme not in ("http", "https"):
            raise TransportRefused(f"Expected a URL such as http://127.0.0.1:8080, but found {shown(url)!r}")
        self._client = httpx.Client(base_url=base, headers=headers, timeout=CALL_S, transport=transport)
        self._worker = ""
        self._types: list[str] = []
        self._cancelled: deque[str] = deque()
        self._asked_at_s = 0.0

    def open(self, worker: str, types: Sequence[str]) -> None:
        self._worker, self._types = worker, list(types)

    def take(self, room: int, wait_s: float) -> list[Task]:
        if room <= 0:
            return []
        wait_ms = int(wait_s * 1000)
        request = {"worker": self._worker, "types": self._types, "max": min(room, TASKS_MAX), "wait_ms": wait_ms}
        polled = self._call("tasks/poll", request, Polled)
        self._cancelled.extend(polled.cancelled)
        return [given.task() for given in polled.tasks]

    def report(self, reports: Sequence[TaskReport]) -> list[Answer]:
        results = [result for batch in _batches(reports) for result in self._report(batch).results]
        return [Answer(result.token, result.accepted, result.reason or "") for result in results]

    def cancellations(self) -> list[tuple[str, str]]:
        if time.monotonic() - self._asked_at_s > ASK_EVERY_S:
            self._report([])
        cancelled: list[tuple[str, str]] = []
        while self._cancelled:
            cancelled.append((self._cancelled.popleft(), ""))
        return cancelled

    def drain(self) -> None:
        """Nothing: what is not polled goes to others."""

    def close(self) -> None:
        self._client.close()

    def _report(self, spoken: Sequence[msgspec.Raw]) -> Reported:
        reported = self._call("tasks/reports", {"worker": self._worker, "reports": spoken}, Reported)
        self._cancelled.extend(reported.cancelled)
        return reported

    def _call(self, path: str, body: object, answer: type[T]) -> T:
        try:
            response = self._client.post(
                path, content=msgspec.json.encode(body), headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            raise TransportUnavailable(
                f"Expected {shown(str(self._client.base_url))} to answer, but {error!r}"
            ) from error
        self._asked_at_s = time.monotonic()
        if not response.is_success:
            raise _refusal(response)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            raise TransportRefused(
                f"Expected an answer of Kapelle's API from {_shown(response)}, but {error}"
            ) from error


def _refusal(response: httpx.Response) -> TransportRefused | TransportUnavailable:
    status = response.status_code
    text = f"Expected {_shown(response)} to accept the call, but it answered {status}: {_detail(response)}"
    if status in NOT_LET_IN:
        text += " (a worker needs a token of the role operator)"
    is_passing = response.is_server_error or status in RETRIED
    return TransportUnavailable(text) if is_passing else TransportRefused(text)


def _shown(response: httpx.Response) -> str:
    return shown(str(response.url))


def _detail(response: httpx.Response) -> str:
    """What the server says is wrong, without the form that it says it in."""
    try:
        problem = msgspec.json.decode(response.content, type=ProblemBody)
        detail = "; ".join([problem.detail, *problem.errors])
    except msgspec.DecodeError:
        detail = response.text
    return detail[:DETAIL_CHARS_MAX]


def _batches(reports: Sequence[TaskReport]) -> Iterator[list[msgspec.Raw]]:
    """The reports as the API takes them, no more at a time than one request can hold."""
    batch, size = list[msgspec.Raw](), 0
    for text in (msgspec.json.encode(_report_body(task_report)) for task_report in reports):
        if batch and size + len(text) > BODY_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(msgspec.Raw(text))
        size += len(text) + 1
    if batch:
        yield batch


def _report_body(task_report: TaskReport) -> ReportBody:
    task = task_report.task
    return ReportBody(
        token=task.token,
        workflow_id=task.workflow_id,
        instance_id=task.instance_id,
        step_id=task.step_id,
        report=task_report.report,
        message=task_report.message,
        outputs=_raw(task_report.outputs),
        log=task_report.log,
        signals=_raw(task_report.signals),
    )


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())
