"""The client for programs with an event loop: `Client`, with `await`.

async with AsyncClient("http://127.0.0.1:8080", user="ann") as kapelle:
    started = await kapelle.instances.start("etl")
    async for change in kapelle.instances.watch("etl", started.workflow_instance_id):
        print(change.step_id, change.status)
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx

from kapelle.client import calls
from kapelle.client import results as r
from kapelle.client.backfills import AsyncBackfills
from kapelle.client.breakpoints import AsyncBreakpoints
from kapelle.client.calls import Call, Definition, Params
from kapelle.client.events import AsyncEvents
from kapelle.client.exchange import TIMEOUT_S, Address, LastWrite, absence, answer, arguments, may_try_again, pauses
from kapelle.client.options import InstanceFilters, ResumeOptions, StartOptions, StepRestartOptions
from kapelle.client.permits import AsyncPermits
from kapelle.client.schedules import AsyncSchedules
from kapelle.client.signals import AsyncSignals, AsyncTriggers
from kapelle.client.watch import Watching

T = TypeVar("T")


class AsyncClient:
    """A Kapelle server. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = Address(url, token, user)
        self.http = httpx.AsyncClient(**address.settings(), timeout=timeout_s, transport=transport)
        self._last_write = LastWrite()
        self.url = url.rstrip("/")
        self.workflows = Workflows(self)
        self.instances = Instances(self)
        self.steps = Steps(self)
        self.signals = AsyncSignals(self)
        self.triggers = AsyncTriggers(self)
        self.breakpoints = AsyncBreakpoints(self)
        self.permits = AsyncPermits(self)
        self.schedules = AsyncSchedules(self)
        self.backfills = AsyncBackfills(self)
        self.events = AsyncEvents(self)

    async def health(self) -> r.Health:
        """The health of the server."""
        return await self.send(calls.health())

    async def send(self, call: Call[T]) -> T:
        """Make a call. It is retried while the server is unreachable; its key makes sure that it counts once."""
        for pause_s in pauses():
            try:
                response = await self.http.request(**arguments(call, self._last_write))
                self._last_write.note(call, response)
                return answer(call, response)
            except httpx.HTTPError as error:
                if pause_s is None or not may_try_again(error):
                    raise absence(error, self.url, call) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def aclose(self) -> None:
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


class Resource:
    """A group of calls."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client


class Workflows(Resource):
    """Definitions and their versions."""

    async def push(self, definition: Definition, *, is_yaml: bool = False, request_id: str | None = None) -> r.Pushed:
        """Add a version: a `Workflow`, a create request as an object or as JSON text, or YAML text."""
        return await self._client.send(calls.push(definition, is_yaml=is_yaml, key=request_id))

    async def validate(self, definition: Definition, *, is_yaml: bool = False) -> r.Valid:
        """Check whether a push would be accepted. Raises `Invalid` with all problems otherwise."""
        return await self._client.send(calls.validate(definition, is_yaml=is_yaml))

    async def get(self, workflow_id: str, version: str | int = "default") -> r.Version:
        """A version by its number, or `active`, `latest` or `default` (the active one, else the latest)."""
        return await self._client.send(calls.get_version(workflow_id, version))

    async def versions(
        self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> r.Page[r.Version]:
        """The versions of a workflow, latest first."""
        return await self._client.send(calls.list_versions(workflow_id, limit, cursor))

    async def list(
        self, *, prefix: str = "", limit: int | None = None, cursor: str | None = None
    ) -> r.Page[r.WorkflowEntry]:
        """All workflows, ordered by id."""
        return await self._client.send(calls.list_workflows(prefix, limit, cursor))

    async def overview(self, workflow_id: str) -> r.Overview:
        """An overview of a workflow: versions, properties, and the number of instances in each status."""
        return await self._client.send(calls.overview(workflow_id))

    async def matrix(self, workflow_id: str, *, limit: int | None = None) -> r.Matrix:
        """The newest instances of a workflow, with the state of each step."""
        return await self._client.send(calls.matrix(workflow_id, limit))

    async def activate(
        self, workflow_id: str, version: str | int = "latest", *, request_id: str | None = None
    ) -> r.Done:
        """Make a version the active one."""
        return await self._client.send(calls.activate(workflow_id, version, request_id))

    async def deactivate(self, workflow_id: str, *, request_id: str | None = None) -> r.Done:
        """Remove the active version of a workflow."""
        return await self._client.send(calls.act_on_workflow(workflow_id, "deactivate", "", request_id))

    async def delete(self, workflow_id: str, *, request_id: str | None = None) -> r.Done:
        """Delete a workflow that has no queued or running instances."""
        return await self._client.send(calls.delete(workflow_id, request_id))

    async def properties(
        self, workflow_id: str, changes: Mapping[str, object], *, request_id: str | None = None
    ) -> r.Done:
        """Change properties. Properties that are not given stay as they are."""
        return await self._client.send(calls.change_properties(workflow_id, changes, request_id))

    async def stop(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Stop all queued and running instances."""
        return await self._client.send(calls.act_on_workflow(workflow_id, "stop", reason, request_id))

    async def kill(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Kill all queued and running instances. They end as FAILED."""
        return await self._client.send(calls.act_on_workflow(workflow_id, "kill", reason, request_id))

    async def unblock(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Unblock all failed instances, so that the run strategy continues past them."""
        return await self._client.send(calls.act_on_workflow(workflow_id, "unblock", reason, request_id))


class Instances(Resource):
    """Instances of workflows, and their runs."""

    async def start(
        self,
        workflow_id: str,
        *,
        version: str | int = "active",
        run_params: Params | None = None,
        step_run_params: Mapping[str, Params] | None = None,
        **more: Unpack[StartOptions],
    ) -> r.Started:
        """Start an instance. Parameters are plain values or `Param`. The same request id returns the same instance."""
        call = calls.start(workflow_id, version, run_params=run_params, step_run_params=step_run_params, more=more)
        return await self._client.send(call)

    async def get(
        self, workflow_id: str, instance_id: int, *, run_id: int | None = None, aggregated: bool = False
    ) -> r.InstanceRecord:
        """A run of an instance, by default the latest; optionally with the state of steps after all runs."""
        return await self._client.send(calls.get_instance(workflow_id, instance_id, run_id, aggregated=aggregated))

    async def list(
        self,
        workflow_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Unpack[InstanceFilters],
    ) -> r.Page[r.InstanceRecord]:
        """The latest run of each instance, of one workflow or of all, newest first."""
        return await self._client.send(calls.list_instances(workflow_id, filters, limit, cursor))

    async def counts(self, workflow_id: str | None = None) -> r.Counts:
        """The number of instances in each status, of one workflow or of all."""
        return await self._client.send(calls.count_instances(workflow_id))

    async def history(self, workflow_id: str, instance_id: int) -> r.History:
        """The events of an instance in the order of the log, with partition and offset."""
        return await self._client.send(calls.history(workflow_id, instance_id))

    async def runs(self, workflow_id: str, instance_id: int) -> r.Page[r.InstanceRecord]:
        """The runs of an instance, latest first."""
        return await self._client.send(calls.list_runs(workflow_id, instance_id))

    async def timeline(self, workflow_id: str, instance_id: int) -> r.Timeline:
        """The timeline of an instance, in order."""
        return await self._client.send(calls.timeline(workflow_id, instance_id))

    def watch(
        self, workflow_id: str, instance_id: int, *, timeout_s: float | None = None
    ) -> AsyncIterator[r.TimelineEntry]:
        """The timeline entries of the latest run as they happen, until the instance has ended."""
        return self._followed((workflow_id, instance_id), Watching(timeout_s))

    async def wait(self, workflow_id: str, instance_id: int, *, timeout_s: float | None = None) -> r.InstanceRecord:
        """Wait until an instance has ended. Returns its latest run."""
        watching = Watching(timeout_s)
        while not watching.has_ended(record := await self.get(workflow_id, instance_id)):
            await asyncio.sleep(watching.pause_s())
        return record

    async def _followed(self, at: tuple[str, int], watching: Watching) -> AsyncIterator[r.TimelineEntry]:
        while True:
            record = await self.get(*at)  # before the timeline: so when it has ended, the timeline has all of it
            for entry in watching.news(record, await self.timeline(*at)):
                yield entry
            if watching.is_over:
                return
            await asyncio.sleep(watching.pause_s())

    async def stop(
        self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Stop a queued or running instance."""
        return await self._act(workflow_id, instance_id, "stop", reason=reason, key=request_id)

    async def kill(
        self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Kill a queued or running instance. It ends as FAILED."""
        return await self._act(workflow_id, instance_id, "kill", reason=reason, key=request_id)

    async def unblock(
        self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Unblock a failed instance, so that the run strategy continues past it."""
        return await self._act(workflow_id, instance_id, "unblock", reason=reason, key=request_id)

    async def restart(
        self,
        workflow_id: str,
        instance_id: int,
        *,
        policy: str = "RESTART_FROM_INCOMPLETE",
        run_params: Params | None = None,
        request_id: str | None = None,
    ) -> r.Started:
        """Restart an ended instance in a new run."""
        call = calls.restart(workflow_id, instance_id, policy=policy, run_params=run_params, key=request_id)
        return await self._client.send(call)

    async def _act(self, workflow_id: str, instance_id: int, action: str, *, reason: str, key: str | None) -> r.Done:
        return await self._client.send(calls.act_on_instance(workflow_id, instance_id, action, reason=reason, key=key))


class Steps(Resource):
    """Steps of instances."""

    async def list(self, workflow_id: str, instance_id: int, *, run_id: int | None = None) -> list[r.StepRecord]:
        """The latest attempt of each step, in one run or over all runs."""
        return await self._client.send(calls.list_steps(workflow_id, instance_id, run_id))

    async def get(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        run_id: int | None = None,
        attempt: int | None = None,
    ) -> r.StepRecord:
        """An attempt of a step with its timeline, by default the latest."""
        return await self._client.send(
            calls.get_step(workflow_id, instance_id, step_id, run_id=run_id, attempt=attempt)
        )

    async def children(
        self,
        at: tuple[str, int, str],
        *,
        status: str | Iterable[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
    ) -> r.Page[r.InstanceRecord]:
        """The iterations, rounds or the subworkflow of a step (workflow, instance, step), by number."""
        return await self._client.send(calls.list_children(at, status=status, limit=limit, cursor=cursor))

    async def restart(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        params: Params | None = None,
        **more: Unpack[StepRestartOptions],
    ) -> r.Done:
        """Restart an ended instance from this step, or retry a failed step of a running instance.

        `policy` says how iterations, rounds and subworkflows restart that run again with it. `from_inline_root`
        restarts the nearest ancestor that is no iteration and no round instead, by `policy`. Then `params` reach the
        step in every iteration that runs again.
        """
        call = calls.restart_step((workflow_id, instance_id, step_id), params=params, more=more)
        return await self._client.send(call)

    async def stop(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Stop an active step."""
        return await self._act((workflow_id, instance_id, step_id), "stop", reason, request_id)

    async def kill(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Kill an active step. It ends as failed."""
        return await self._act((workflow_id, instance_id, step_id), "kill", reason, request_id)

    async def skip(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Skip a step: the run continues as if the step had succeeded."""
        return await self._act((workflow_id, instance_id, step_id), "skip", reason, request_id)

    async def bypass(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Bypass the signals that a step waits for."""
        return await self._act((workflow_id, instance_id, step_id), "bypass", reason, request_id)

    async def resume(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        params: Params | None = None,
        **more: Unpack[ResumeOptions],
    ) -> r.Done:
        """Resume a step that a breakpoint has paused, with other parameters if any are given."""
        call = calls.resume_step((workflow_id, instance_id, step_id), params=params, more=more)
        return await self._client.send(call)

    async def _act(self, at: tuple[str, int, str], action: str, reason: str, key: str | None) -> r.Done:
        return await self._client.send(calls.act_on_step(at, action, reason=reason, key=key))
