"""Health and readiness. These routes need no token, and show nothing that needs one."""

import asyncio
from importlib.metadata import version
from typing import Final

import anyio.to_thread
from fastapi import APIRouter, Response

from kapelle.api.answers.health import Health, Readiness
from kapelle.api.context import Context, Here, json_response
from kapelle.api.shapes import Responses, answer
from kapelle.topology.errors import TopologyError
from kapelle.views.queries.unreadable import unreadable_count

router = APIRouter(tags=["health"])

LAG_WAIT_S: Final = 0.5  # whoever asks has little patience, and the log may be away
HEALTHY: Final[Responses] = {
    200: answer(Health, description="The view is running."),
    503: answer(Health, description="The view or the engine has failed."),
}
READY: Final[Responses] = {
    200: answer(Readiness, description="The node can take requests."),
    503: answer(Readiness, description="The log does not answer, or the view is far behind."),
}
READY_LAG_RECORDS: Final = 10_000  # a view folds so many within a second


@router.get("/health", summary="Check health", responses=HEALTHY)
async def health(here: Here) -> Response:
    """Return 200 while the view is running, and the engine too if it is in this process.

    Return 503 with the reason if one of them has failed.

    Restart the process after a 503. `views.unreadable` is the number of records that the view could not read.
    The view lists these records and continues.
    """
    failed = _failure(here)
    if failed:
        return _answer(here, failed, None, well="ok", ill="failed")
    unreadable = await anyio.to_thread.run_sync(here.views.read, unreadable_count)
    return _answer(here, "", await lag_of(here), well="ok", ill="failed", unreadable=unreadable)


@router.get("/ready", summary="Check readiness", responses=READY)
async def ready(here: Here) -> Response:
    """Return 200 while the log answers and the view is close to its end. Return 503 with the reason otherwise."""
    reason, lag = _failure(here), None
    if not reason:
        lag = await lag_of(here)
        if lag is None:
            reason = "Expected the log to answer, but it does not"
        elif lag > READY_LAG_RECORDS:
            reason = f"Expected the view to be within {READY_LAG_RECORDS:,} records of the log, but {lag:,} are left"
    return _answer(here, reason, lag, well="ready", ill="not ready")


async def lag_of(here: Context) -> int | None:
    """How far the view is behind; None if the log does not say at once."""
    asking = asyncio.ensure_future(here.lag())
    asking.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear of it
    done, _ = await asyncio.wait({asking}, timeout=LAG_WAIT_S)
    try:
        return asking.result() if done else None
    except TopologyError:
        return None


def _failure(here: Context) -> str:
    failed = here.journal.failure or here.views.failure
    return f"{type(failed).__name__}: {failed}" if failed else ""


def _answer(here: Context, reason: str, lag: int | None, *, well: str, ill: str, **views: int) -> Response:
    body: dict[str, object] = {
        "status": ill if reason else well,
        "version": version("kapelle"),
        "mode": here.journal.mode.value,
        "views": {"lag": lag, **views},
    }
    if reason:
        body["detail"] = reason
    return json_response(body, 503 if reason else 200)
