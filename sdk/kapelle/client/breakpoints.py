"""Breakpoints through the client: each call as data, and the same methods for both kinds of clients."""

from typing import Unpack

from kapelle.client.calls import Call, QueryValue, members, read, remove, write
from kapelle.client.gate_results import BreakpointChange, BreakpointRecord, PausedAttempt
from kapelle.client.options import Precision
from kapelle.client.results import Page
from kapelle.client.signals import AsyncSender, Sender

AT = ("workflows", "steps", "breakpoints")

# Calls ----------------------------------------------------------------------------------------------------------------


def _set(workflow_id: str, step_id: str, key: str | None, only: Precision) -> Call[BreakpointChange]:
    body = members(
        workflow_id=workflow_id,
        step_id=step_id,
        workflow_version_id=only.get("version"),
        workflow_instance_id=only.get("instance_id"),
        workflow_run_id=only.get("run_id"),
        step_attempt_id=only.get("attempt"),
    )
    return write("POST", BreakpointChange, *AT, body=body, key=key)


def _delete(at: tuple[str, str], key: str | None, only: Precision, *, resume: bool) -> Call[BreakpointChange]:
    query: dict[str, QueryValue | None] = {
        "workflowId": at[0],
        "stepId": at[1],
        "workflowVersionId": only.get("version"),
        "workflowInstanceId": only.get("instance_id"),
        "workflowRunId": only.get("run_id"),
        "stepAttemptId": only.get("attempt"),
        "resume": None if resume else "false",
    }
    return remove(BreakpointChange, *AT, key=key, **query)


def _of(workflow_id: str | None, step_id: str | None) -> dict[str, QueryValue | None]:
    return {"workflowId": workflow_id, "stepId": step_id}


def _list(of: dict[str, QueryValue | None], limit: int | None, cursor: str | None) -> Call[Page[BreakpointRecord]]:
    return read(Page[BreakpointRecord], *AT, **of, limit=limit, cursor=cursor)


def _paused(of: dict[str, QueryValue | None], limit: int | None, cursor: str | None) -> Call[Page[PausedAttempt]]:
    return read(Page[PausedAttempt], *AT, "paused-step-attempts", **of, limit=limit, cursor=cursor)


class Breakpoints:
    """Setting and deleting breakpoints, and the attempts that they have paused."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def set(
        self, workflow_id: str, step_id: str, *, request_id: str | None = None, **only: Unpack[Precision]
    ) -> BreakpointChange:
        """Pause the attempts of a step before they start. Set again, a breakpoint gets a new author and a new time."""
        return self._client.send(_set(workflow_id, step_id, request_id, only))

    def delete(
        self,
        workflow_id: str,
        step_id: str,
        *,
        resume: bool = True,
        request_id: str | None = None,
        **only: Unpack[Precision],
    ) -> BreakpointChange:
        """Delete the breakpoint that was set with exactly these fields, and resume what no other breakpoint holds."""
        return self._client.send(_delete((workflow_id, step_id), request_id, only, resume=resume))

    def list(
        self,
        workflow_id: str | None = None,
        step_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[BreakpointRecord]:
        """The breakpoints of a step, of a workflow or of all, by workflow and step."""
        return self._client.send(_list(_of(workflow_id, step_id), limit, cursor))

    def paused(
        self,
        workflow_id: str | None = None,
        step_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[PausedAttempt]:
        """Paused attempts of a step, of a workflow with its iterations and rounds, or of all, earliest first."""
        return self._client.send(_paused(_of(workflow_id, step_id), limit, cursor))


class AsyncBreakpoints:
    """The same as `Breakpoints`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def set(
        self, workflow_id: str, step_id: str, *, request_id: str | None = None, **only: Unpack[Precision]
    ) -> BreakpointChange:
        """Pause the attempts of a step before they start. Set again, a breakpoint gets a new author and a new time."""
        return await self._client.send(_set(workflow_id, step_id, request_id, only))

    async def delete(
        self,
        workflow_id: str,
        step_id: str,
        *,
        resume: bool = True,
        request_id: str | None = None,
        **only: Unpack[Precision],
    ) -> BreakpointChange:
        """Delete the breakpoint that was set with exactly these fields, and resume what no other breakpoint holds."""
        return await self._client.send(_delete((workflow_id, step_id), request_id, only, resume=resume))

    async def list(
        self,
        workflow_id: str | None = None,
        step_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[BreakpointRecord]:
        """The breakpoints of a step, of a workflow or of all, by workflow and step."""
        return await self._client.send(_list(_of(workflow_id, step_id), limit, cursor))

    async def paused(
        self,
        workflow_id: str | None = None,
        step_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[PausedAttempt]:
        """Paused attempts of a step, of a workflow with its iterations and rounds, or of all, earliest first."""
        return await self._client.send(_paused(_of(workflow_id, step_id), limit, cursor))
