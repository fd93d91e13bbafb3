"""The client for programs without an event loop.

with Client("http://127.0.0.1:8080", user="ann") as kapelle:
    kapelle.workflows.push(workflow)
    started = kapelle.instances.start("etl", run_params={"day": "2026-07-01"})
    for change in kapelle.instances.watch("etl", started.workflow_instance_id):
        print(change.step_id, change.status)
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx

from kapelle.client import calls
from kapelle.client import results as r
from kapelle.client.backfills import Backfills
from kapelle.client.breakpoints import Breakpoints
from kapelle.client.calls import Call, Definition, Params
from kapelle.client.events import Events
from kapelle.client.exchange import TIMEOUT_S, Address, LastWrite, absence, answer, arguments, may_try_again, pauses
from kapelle.client.options import InstanceFilters, ResumeOptions, StartOptions, StepRestartOptions
from kapelle.client.permits import Permits
from kapelle.client.schedules import Schedules
from kapelle.client.signals import Signals, Triggers
from kapelle.client.watch import Watching

T = TypeVar("T")


class Client:
    """A Kapelle server. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        address = Address(url, token, user)
        self.http = httpx.Client(**address.settings(), timeout=timeout_s, transport=transport)
        self._last_write = LastWrite()
        self.url = url.rstrip("/")
        self.workflows = Workflows(self)
        self.instances = Instances(self)
        self.steps = Steps(self)
        self.signals = Signals(self)
        self.triggers = Triggers(self)
        self.breakpoints = Breakpoints(self)
        self.permits = Permits(self)
        self.schedules = Schedules(self)
        self.backfills = Backfills(self)
        self.events = Events(self)

    def health(self) -> r.Health:
        """The health of the server."""
        return self.send(calls.health())

    def send(self, call: Call[T]) -> T:
        """Make a call. It is retried while the server is unreachable; its key makes sure that it counts once."""
        for pause_s in pauses():
            try:
                response = self.http.request(**arguments(call, self._last_write))
                self._last_write.note(call, response)
                return answer(call, response)
            except httpx.HTTPError as error:
                if pause_s is None or not may_try_again(error):
                    raise absence(error, self.url, call) from error
            time.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Resource:
    """A group of calls."""

    def __init__(self, client: Client) -> None:
        self._client = client


class Workflows(Resource):
    """Definitions and their versions."""

    def push(self, definition: Definition, *, is_yaml: bool = False, request_id: str | None = None) -> r.Pushed:
        """Add a version: a `Workflow`, a create request as an object or as JSON text, or YAML text."""
        return self._client.send(calls.push(definition, is_yaml=is_yaml, key=request_id))

    def validate(self, definition: Definition, *, is_yaml: bool = False) -> r.Valid:
        """Check whether a push would be accepted. Raises `Invalid` with all problems otherwise."""
        return self._client.send(calls.validate(definition, is_yaml=is_yaml))

    def get(self, workflow_id: str, version: str | int = "default") -> r.Version:
        """A version by its number, or `active`, `latest` or `default` (the active one, else the latest)."""
        return self._client.send(calls.get_version(workflow_id, version))

    def versions(self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None) -> r.Page[r.Version]:
        """The versions of a workflow, latest first."""
        return self._client.send(calls.list_versions(workflow_id, limit, cursor))

    def list(self, *, prefix: str = "", limit: int | None = None, cursor: str | None = None) -> r.Page[r.WorkflowEntry]:
        """All workflows, ordered by id."""
        return self._client.send(calls.list_workflows(prefix, limit, cursor))

    def overview(self, workflow_id: str) -> r.Overview:
        """An overview of a workflow: versions, properties, and the number of instances in each status."""
        return self._client.send(calls.overview(workflow_id))

    def matrix(self, workflow_id: str, *, limit: int | None = None) -> r.Matrix:
        """The newest instances of a workflow, with the state of each step."""
        return self._client.send(calls.matrix(workflow_id, limit))

    def activate(self, workflow_id: str, version: str | int = "latest", *, request_id: str | None = None) -> r.Done:
        """Make a version the active one."""
        return self._client.send(calls.activate(workflow_id, version, request_id))

    def deactivate(self, workflow_id: str, *, request_id: str | None = None) -> r.Done:
        """Remove the active version of a workflow."""
        return self._client.send(calls.act_on_workflow(workflow_id, "deactivate", "", request_id))

    def delete(self, workflow_id: str, *, request_id: str | None = None) -> r.Done:
        """Delete a workflow that has no queued or running instances."""
        return self._client.send(calls.delete(workflow_id, request_id))

    def properties(self, workflow_id: str, changes: Mapping[str, object], *, request_id: str | None = None) -> r.Done:
        """Change properties. Properties that are not given stay as they are."""
        return self._client.send(calls.change_properties(workflow_id, changes, request_id))

    def stop(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Stop all queued and running instances."""
        return self._client.send(calls.act_on_workflow(workflow_id, "stop", reason, request_id))

    def kill(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Kill all queued and running instances. They end as FAILED."""
        return self._client.send(calls.act_on_workflow(workflow_id, "kill", reason, request_id))

    def unblock(self, workflow_id: str, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Unblock all failed instances, so that the run strategy continues past them."""
        return self._client.send(calls.act_on_workflow(workflow_id, "unblock", reason, request_id))


class Instances(Resource):
    """Instances of workflows, and their runs."""

    def start(
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
        return self._client.send(call)

    def get(
        self, workflow_id: str, instance_id: int, *, run_id: int | None = None, aggregated: bool = False
    ) -> r.InstanceRecord:
        """A run of an instance, by default the latest; optionally with the state of steps after all runs."""
        return self._client.send(calls.get_instance(workflow_id, instance_id, run_id, aggregated=aggregated))

    def list(
        self,
        workflow_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **filters: Unpack[InstanceFilters],
    ) -> r.Page[r.InstanceRecord]:
        """The latest run of each instance, of one workflow or of all, newest first."""
        return self._client.send(calls.list_instances(workflow_id, filters, limit, cursor))

    def counts(self, workflow_id: str | None = None) -> r.Counts:
        """The number of instances in each status, of one workflow or of all."""
        return self._client.send(calls.count_instances(workflow_id))

    def history(self, workflow_id: str, instance_id: int) -> r.History:
        """The events of an instance in the order of the log, with partition and offset."""
        return self._client.send(calls.history(workflow_id, instance_id))

    def runs(self, workflow_id: str, instance_id: int) -> r.Page[r.InstanceRecord]:
        """The runs of an instance, latest first."""
        return self._client.send(calls.list_runs(workflow_id, instance_id))

    def timeline(self, workflow_id: str, instance_id: int) -> r.Timeline:
        """The timeline of an instance, in order."""
        return self._client.send(calls.timeline(workflow_id, instance_id))

    def watch(self, workflow_id: str, instance_id: int, *, timeout_s: float | None = None) -> Iterator[r.TimelineEntry]:
        """The timeline entries of the latest run as they happen, until the instance has ended."""
        return self._followed((workflow_id, instance_id), Watching(timeout_s))

    def wait(self, workflow_id: str, instance_id: int, *, timeout_s: float | None = None) -> r.InstanceRecord:
        """Wait until an instance has ended. Returns its latest run."""
        watching = Watching(timeout_s)
        while not watching.has_ended(record := self.get(workflow_id, instance_id)):
            time.sleep(watching.pause_s())
        return record

    def _followed(self, at: tuple[str, int], watching: Watching) -> Iterator[r.TimelineEntry]:
        while True:
            record = self.get(*at)  # before the timeline: so when it has ended, the timeline has all of it
            yield from watching.news(record, self.timeline(*at))
            if watching.is_over:
                return
            time.sleep(watching.pause_s())

    def stop(self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Stop a queued or running instance."""
        return self._act(workflow_id, instance_id, "stop", reason=reason, key=request_id)

    def kill(self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Kill a queued or running instance. It ends as FAILED."""
        return self._act(workflow_id, instance_id, "kill", reason=reason, key=request_id)

    def unblock(self, workflow_id: str, instance_id: int, *, reason: str = "", request_id: str | None = None) -> r.Done:
        """Unblock a failed instance, so that the run strategy continues past it."""
        return self._act(workflow_id, instance_id, "unblock", reason=reason, key=request_id)

    def restart(
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
        return self._client.send(call)

    def _act(self, workflow_id: str, instance_id: int, action: str, *, reason: str, key: str | None) -> r.Done:
        return self._client.send(calls.act_on_instance(workflow_id, instance_id, action, reason=reason, key=key))


class Steps(Resource):
    """Steps of instances."""

    def list(self, workflow_id: str, instance_id: int, *, run_id: int | None = None) -> list[r.StepRecord]:
        """The latest attempt of each step, in one run or over all runs."""
        return self._client.send(calls.list_steps(workflow_id, instance_id, run_id))

    def get(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        run_id: int | None = None,
        attempt: int | None = None,
    ) -> r.StepRecord:
        """An attempt of a step with its timeline, by default the latest."""
        return self._client.send(calls.get_step(workflow_id, instance_id, step_id, run_id=run_id, attempt=attempt))

    def children(
        self,
        at: tuple[str, int, str],
        *,
        status: str | Iterable[str] = (),
        limit: int | None = None,
        cursor: str | None = None,
    ) -> r.Page[r.InstanceRecord]:
        """The iterations, rounds or the subworkflow of a step (workflow, instance, step), by number."""
        return self._client.send(calls.list_children(at, status=status, limit=limit, cursor=cursor))

    def restart(
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
        return self._client.send(call)

    def stop(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Stop an active step."""
        return self._act((workflow_id, instance_id, step_id), "stop", reason, request_id)

    def kill(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Kill an active step. It ends as failed."""
        return self._act((workflow_id, instance_id, step_id), "kill", reason, request_id)

    def skip(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Skip a step: the run continues as if the step had succeeded."""
        return self._act((workflow_id, instance_id, step_id), "skip", reason, request_id)

    def bypass(
        self, workflow_id: str, instance_id: int, step_id: str, *, reason: str = "", request_id: str | None = None
    ) -> r.Done:
        """Bypass the signals that a step waits for."""
        return self._act((workflow_id, instance_id, step_id), "bypass", reason, request_id)

    def resume(
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
        return self._client.send(call)

    def _act(self, at: tuple[str, int, str], action: str, reason: str, key: str | None) -> r.Done:
        return self._client.send(calls.act_on_step(at, action, reason=reason, key=key))
