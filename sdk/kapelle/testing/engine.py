"""The whole engine in one object, in memory and on a virtual clock, for tests of workflows.

    engine = Engine()
    engine.push(Path("etl.yaml"))                  # or a Workflow, a dictionary, JSON
    run = engine.start("etl")
    engine.task(run, "load").succeed(rows=3)       # what a worker would answer
    engine.advance(60_000)                         # a minute, without waiting
    assert run.status is InstanceStatus.SUCCEEDED

It is the product's topology on the embedded log: nothing in it knows that it is a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final, TypedDict, Unpack

import msgspec

from kapelle.client.options import Precision
from kapelle.client.parameters import Params, params_json
from kapelle.processors.intake.forms import NotASignal, checked
from kapelle.processors.periods import moment_ms
from kapelle.processors.runs.composites.identity import inline_id, is_inline
from kapelle.processors.runs.params import layer_of
from kapelle.processors.runs.tables import ChildRow, RunRow, StepRow
from kapelle.processors.runs.timeline import Entry, timeline
from kapelle.processors.sel.joda.zone import UTC
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import (
    CANCELLATIONS,
    PERMIT_COMMANDS,
    PERMIT_EVENTS,
    RUN_COMMANDS,
    RUN_EVENTS,
    SIGNAL_EVENTS,
    SIGNALS,
    TASKS,
    WORKFLOW_COMMANDS,
    WORKFLOW_EVENTS,
    ids_of,
    run_key,
    tag_key,
)
from kapelle.schemas import Codec, Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Report, RestartPolicy, StepStatus
from kapelle.testing.breakpoints import BreakpointHandle, Request, handle_at
from kapelle.testing.clock import VirtualClock, run_for
from kapelle.testing.definitions import Definition, definition_text
from kapelle.testing.schedules import (
    BackfillHandle,
    BackfillOptions,
    Moment,
    Schedules,
    start_backfill,
)
from kapelle.testing.workers import run_worker
from kapelle.topology.build import partition_of
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.page import topology
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import MemoryStore
from kapelle.worker import Worker

AUTHOR: Final = "tester"
READ_MAX: Final = 1_000
MINUTE_MS: Final = 60_000
# Where the answers to requests are.
EVENTS_OF: Final = {WORKFLOW_COMMANDS: WORKFLOW_EVENTS, RUN_COMMANDS: RUN_EVENTS, PERMIT_COMMANDS: PERMIT_EVENTS}
VERDICTS: Final[dict[type[object], str]] = {
    c.SignalAccepted: "ACCEPTED",
    c.SignalDuplicated: "DUPLICATED",
    c.SignalTooLate: "TOO_LATE",
}


class Engine:
    """The product's processors in memory."""

    def __init__(self, *, partitions: int = 1, same_cycle: bool = True) -> None:
        self.author = AUTHOR
        self.clock = VirtualClock()
        self.topology = topology(prefix="test", partitions=partitions)
        self.runtime = EmbeddedRuntime(
            self.topology,
            MemoryStore(),
            EmbeddedSettings(member=MemberSettings(same_cycle=same_cycle)),
            clock=self.clock,
        )
        self._codec = Codec(self.topology.catalog())
        self._numbers = count(1)

    # What goes in -----------------------------------------------------------------------------------------------------

    def send(self, stream: Stream, key: str, command: Contract | bytes) -> None:
        """Send a command to the engine, and process everything that is possible without advancing the clock."""
        self.runtime.publish(stream, key, command)
        self.runtime.step_until_idle()

    def request(self, stream: Stream, key: str, command: Request) -> None:
        """Send a request. Raises `Refused` with all problems."""
        self.send(stream, key, command)
        for event in reversed(self.events(EVENTS_OF[stream], key)):
            if isinstance(event, c.CommandRefused) and event.request_id == command.request_id:
                raise Refused(event)
            if isinstance(event, c.CommandSettled) and event.request_id == command.request_id:
                return
        raise AssertionError(f"Expected an answer to {command!r:.200}, but there is none: it is not fit for its stream")

    def request_id(self) -> str:
        """An id that no request had before."""
        return f"request-{next(self._numbers)}"

    def push(self, request: Definition, *, request_id: str | None = None) -> str:
        """Push a version of a workflow. Returns the id of the workflow. Raises `Refused` with all problems."""
        text, name = definition_text(request), request_id or self.request_id()
        workflow_id = str(json.loads(text)["workflow"]["id"])
        self.request(WORKFLOW_COMMANDS, workflow_id, c.PushVersion(name, AUTHOR, text))
        return workflow_id

    def start(self, workflow_id: str, *, request_id: str | None = None, **more: object) -> RunHandle:
        """Start an instance. `more` are fields of `Start`; objects among them are written as JSON."""
        name = request_id or self.request_id()
        fields = {key: value if isinstance(value, str | bool) else json.dumps(value) for key, value in more.items()}
        start = msgspec.structs.replace(c.Start(name), **fields)
        self.send(WORKFLOW_COMMANDS, workflow_id, c.StartInstances(AUTHOR, (start,)))
        for event in reversed(self.events(WORKFLOW_EVENTS)):
            if isinstance(event, c.InstanceCreated | c.StartDuplicated) and event.request_id == name:
                return RunHandle(self, workflow_id, event.instance_id)
            if isinstance(event, c.CommandRefused) and event.request_id == name:
                raise Refused(event)
        raise AssertionError(f"Expected {workflow_id!r} to answer the start {name!r}, but it did not")

    def announce(
        self,
        name: str,
        params: Mapping[str, str | int] | None = None,
        *,
        signal_id: str = "",
        payload: Mapping[str, object] | None = None,
        happened_at_ms: int | None = None,
    ) -> str:
        """Announce a signal from outside. Returns its verdict: ACCEPTED, DUPLICATED or TOO_LATE."""
        texts = [json.dumps(said) for said in (params or {}, payload or {}, {"request_id": self.request_id()})]
        said = c.AnnounceSignal(name, signal_id, texts[0], texts[1], happened_at_ms, texts[2])
        try:
            checked(said)
        except NotASignal as error:
            raise AssertionError(f"Expected a signal that can be announced: {error}") from None
        self.send(SIGNALS, name, said)
        told = [event for event in self.events(SIGNAL_EVENTS, name) if getattr(event, "source", "") == texts[2]]
        return VERDICTS[type(told[-1])]

    def breakpoint(self, of: str | RunHandle, step_id: str, **only: Unpack[Precision]) -> BreakpointHandle:
        """Pause the attempts of a step before they start: those of a workflow, or of one instance.

        Raises `Refused` if there is no such step.
        """
        if not isinstance(of, str):
            only["instance_id"] = of.instance_id
        handle = BreakpointHandle(self, of if isinstance(of, str) else of.workflow_id, step_id, **only)
        handle.set()
        return handle

    def breakpoints(self, workflow_id: str) -> list[BreakpointHandle]:
        """The breakpoints of a workflow, by step."""
        places = self.state("workflows", workflow_id).breakpoints.prefix((workflow_id,))
        return [handle_at(self, place) for place, _ in places]

    def limit(self, tag: str, most: int | None) -> None:
        """Limit how many steps with a tag run at the same time; None removes the limit. Raises `Refused`."""
        name = self.request_id()
        command = c.RemoveLimit(name, AUTHOR) if most is None else c.SetLimit(name, AUTHOR, most)
        self.request(PERMIT_COMMANDS, tag_key(tag), command)

    def schedules(self, workflow_id: str) -> Schedules:
        """The time triggers of a workflow: their ticks, and pausing them."""
        return Schedules(self, workflow_id)

    def backfill(
        self, workflow_id: str, first: Moment, last: Moment, **options: Unpack[BackfillOptions]
    ) -> BackfillHandle:
        """Start one instance for each scheduled time of a period. A date as `last` includes the day. Raises `Refused`.

        Started with the same options or the same `backfill_id`, a backfill is continued.
        """
        return start_backfill(self, workflow_id, first, last, options)

    def advance(self, ms: int = 0, *, days: int = 0, hours: int = 0, minutes: int = 0) -> None:
        """Advance the clock. Every timer and every tick on the way fires when it is due."""
        self.advance_to(self.clock() + ms + ((days * 24 + hours) * 60 + minutes) * MINUTE_MS)

    def advance_to(self, moment: Moment) -> None:
        """Advance the clock to a moment: milliseconds since 1970, or a date or a date-time (without an offset, UTC)."""
        run_for(self.runtime, self.clock, moment_ms(moment, UTC, "moment") - self.clock())

    def run_worker(self, worker: Worker, *, name: str = "worker-1") -> int:
        """Run step functions on all their tasks, until none is left. Returns the number of tasks."""
        return run_worker(self, worker, name=name)

    # What comes out ---------------------------------------------------------------------------------------------------

    def events(self, stream: Stream, key: str | None = None) -> list[Contract]:
        """The records of a stream, of one key or of all."""
        partitions = self.topology.partitions(stream)
        wanted = range(partitions) if key is None else [partition_of(key, partitions)]
        return [value for number in wanted for found, value in self.history(stream, number) if key in (None, found)]

    def history(self, stream: Stream, partition: int) -> Iterator[tuple[str, Contract]]:
        """Everything on one partition of a stream, with its keys."""
        at = 0
        while records := self.runtime.read(stream, partition, at, READ_MAX):
            for record in records:
                yield (record.key or b"").decode(), self._codec.decode(record.value or b"")
            at = records[-1].offset + 1

    def runs(self, workflow_id: str) -> list[RunHandle]:
        """All instances of a workflow, oldest first, including those that signals have started."""
        events = self.events(WORKFLOW_EVENTS, workflow_id)
        created = [event.instance_id for event in events if isinstance(event, c.InstanceCreated)]
        return [RunHandle(self, workflow_id, instance_id) for instance_id in dict.fromkeys(created)]

    def refusals(self) -> list[c.CommandRefused]:
        """The commands that were refused."""
        events = [*self.events(WORKFLOW_EVENTS), *self.events(RUN_EVENTS), *self.events(PERMIT_EVENTS)]
        return [event for event in events if isinstance(event, c.CommandRefused)]

    def tasks(self, run: RunHandle | None = None) -> list[TaskHandle]:
        """All tasks so far, of one run or of all."""
        handles = [TaskHandle(self, task) for task in self.events(TASKS) if isinstance(task, c.Task)]
        return [handle for handle in handles if run is None or handle.key == run.key]

    def task(self, run: RunHandle, step_id: str) -> TaskHandle:
        """The latest task of a step."""
        for handle in reversed(self.tasks(run)):
            if handle.task.step_id == step_id:
                return handle
        raise AssertionError(f"Expected a task of step {step_id!r} of {run.key}, but no task was assigned")

    def cancelled(self) -> list[c.CancelTask]:
        """The tasks that were cancelled."""
        return [event for event in self.events(CANCELLATIONS) if isinstance(event, c.CancelTask)]

    def state(self, processor: str, key: str) -> Any:
        """The tables that a key is in."""
        partition = partition_of(key, self.topology.processor_partitions(processor))
        return self.runtime.member.shards[processor, partition].reader


class Refused(AssertionError):
    """The engine refused a command."""

    def __init__(self, event: c.CommandRefused) -> None:
        super().__init__("\n  ".join([f"{event.command}: {event.refusal}: {event.message}", *event.errors]))
        self.event = event


class RestartOptions(TypedDict, total=False):
    """Options of the restart of a step."""

    from_inline_root: bool  # restart the nearest ancestor that is no iteration and no round
    downstream_policy: RestartPolicy | str | None  # how children restart that run again with the step


class RunHandle:
    """An instance of a workflow: its state, and the actions on it."""

    def __init__(self, engine: Engine, workflow_id: str, instance_id: int) -> None:
        self.engine = engine
        self.workflow_id = workflow_id
        self.instance_id = instance_id
        self.key = run_key(workflow_id, instance_id)

    @property
    def row(self) -> RunRow | None:
        """The latest run; None while the instance is queued."""
        found: RunRow | None = self.engine.state("runs", self.key).runs.get((self.key,))
        return found

    @property
    def status(self) -> InstanceStatus:
        """The status of the instance."""
        if is_inline(self.workflow_id):  # it has no queue: what runs knows of it is all there is
            return self.row.status if self.row is not None else InstanceStatus.CREATED
        row = self.engine.state("workflows", self.workflow_id).instances.get((self.workflow_id, self.instance_id))
        status: InstanceStatus = row.status
        return status

    @property
    def steps(self) -> dict[str, StepStatus]:
        """The states of the steps that were created."""
        return {step_id: row.status for step_id, row in self.step_rows().items()}

    def step_rows(self) -> dict[str, StepRow]:
        """The latest attempts of the steps that were created."""
        rows = self.engine.state("runs", self.key).steps.prefix((self.key,))
        return {step_id: row for (_, step_id), row in rows}

    def params(self, step_id: str | None = None) -> dict[str, Any]:
        """The parameters of a step that is paused, at work or complete, or those of the instance."""
        if step_id is None:
            texts = self._own_params()
        else:
            state, at = self.engine.state("runs", self.key), (self.key, step_id)
            row = state.inputs.get(at) or state.outputs.get(at)
            texts = [row.text] if row else []
        return {name: value for text in texts for name, value in json.loads(text).items()}

    def _own_params(self) -> list[str]:
        """As JSON: those that an iteration shares with others come first, its own last."""
        state, run = self.engine.state("runs", self.key), self.row
        if run is None:
            return []
        return [*(layer_of(state, digest).text for digest in run.layers), run.params]

    def iterations(self, step_id: str) -> list[RunHandle]:
        """The iterations of a foreach step, or the rounds of a while step, in order."""
        return [self._child(step_id, number, row) for number, row in self._children(step_id)]

    def child(self, step_id: str) -> RunHandle:
        """The instance that a subworkflow step has started."""
        for number, row in self._children(step_id):
            if "/" in row.child:
                return self._child(step_id, number, row)
        raise AssertionError(f"Expected step {step_id!r} of {self.key} to have started a subworkflow, but it has not")

    def _children(self, step_id: str) -> list[tuple[int, ChildRow]]:
        rows = self.engine.state("runs", self.key).children.prefix((self.key, step_id))
        return [(number, row) for (_, _, number), row in rows]

    def _child(self, step_id: str, number: int, row: ChildRow) -> RunHandle:
        if "/" in row.child:
            return RunHandle(self.engine, *ids_of(row.child))
        kind = self.engine.state("runs", self.key).fans.get((self.key, step_id)).kind
        return RunHandle(self.engine, inline_id(kind, self.key, step_id), number)

    def events(self) -> list[Contract]:
        """The history of the instance."""
        return self.engine.events(RUN_EVENTS, self.key)

    def changes(self, step_id: str) -> list[c.StepChanged]:
        """The events of a step."""
        return [event for event in self.events() if isinstance(event, c.StepChanged) and event.step_id == step_id]

    def timeline(self) -> list[Entry]:
        """The timeline of the instance and its steps, in order."""
        events = self.engine.events(WORKFLOW_EVENTS, self.workflow_id)
        of_queue = [event for event in events if getattr(event, "instance_id", 0) == self.instance_id]
        return timeline([*of_queue, *self.events()])

    def stop(self, action: Action | str = Action.STOP, reason: str = "") -> None:
        """STOP or KILL the instance."""
        request_id = self.engine.request_id()
        command = c.TerminateInstance(request_id, AUTHOR, self.instance_id, Action(action), reason)
        if is_inline(self.workflow_id):
            self.engine.send(RUN_COMMANDS, self.key, command)
        else:
            self.engine.send(WORKFLOW_COMMANDS, self.workflow_id, command)

    def act(self, step_id: str, action: Action | str, reason: str = "") -> None:
        """STOP, KILL or SKIP a step, or BYPASS the signals that it waits for."""
        command = c.ActOnStep(self.engine.request_id(), AUTHOR, step_id, Action(action), reason)
        self.engine.send(RUN_COMMANDS, self.key, command)

    def resume(
        self,
        step_id: str,
        params: Params | None = None,
        *,
        run_id: int | None = None,
        attempt: int | None = None,
    ) -> None:
        """Resume a paused attempt, with other parameters if any are given. Raises `Refused` if it is not paused.

        `run_id` and `attempt`: only if it is that one.
        """
        command = c.ActOnStep(
            self.engine.request_id(),
            AUTHOR,
            step_id,
            Action.RESUME,
            "",
            run_id=run_id,
            attempt=attempt,
            step_run_params=json.dumps(params_json(params or {})),
        )
        self.engine.request(RUN_COMMANDS, self.key, command)

    def restart(
        self,
        policy: RestartPolicy | str = RestartPolicy.RESTART_FROM_INCOMPLETE,
        *,
        step_id: str | None = None,
        run_params: Mapping[str, object] | None = None,
        step_run_params: Mapping[str, object] | None = None,
        **more: Unpack[RestartOptions],
    ) -> None:
        """Restart the instance, or a step of it."""
        downstream = more.get("downstream_policy")
        command = c.RestartRun(
            self.engine.request_id(),
            AUTHOR,
            RestartPolicy(policy),
            step_id,
            json.dumps(run_params or {}),
            json.dumps(step_run_params or {}),
            from_inline_root=more.get("from_inline_root", False),
            downstream_policy=None if downstream is None else RestartPolicy(downstream),
        )
        self.engine.send(RUN_COMMANDS, self.key, command)


class TaskHandle:
    """A task, with the reports that a worker can send."""

    def __init__(self, engine: Engine, task: c.Task) -> None:
        self.engine = engine
        self.task = task
        self.key = run_key(task.workflow_id, task.instance_id)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the task."""
        found: dict[str, Any] = json.loads(self.task.params)
        return found

    def say(
        self,
        report: Report,
        *,
        message: str = "",
        outputs: Mapping[str, object] | None = None,
        worker: str = "worker-1",
        token: str | None = None,
    ) -> None:
        """Send any report of a worker, valid or not."""
        text = None if outputs is None else json.dumps(outputs)
        word = c.ReportTask(token or self.task.token, self.task.step_id, worker, report, message, text)
        self.engine.send(RUN_COMMANDS, self.key, word)

    def begin(self, worker: str = "worker-1") -> None:
        """Take the task, under a lease."""
        self.say(Report.STARTED, worker=worker)

    def beat(self, worker: str = "worker-1") -> None:
        """Send a heartbeat."""
        self.say(Report.HEARTBEAT, worker=worker)

    def succeed(self, worker: str = "worker-1", **outputs: object) -> None:
        """Report success with output parameters. Their types are derived from the values."""
        given = {name: {"type": TYPES[type(value)], "value": value} for name, value in outputs.items()}
        self.say(Report.SUCCEEDED, outputs=given or None, worker=worker)

    def fail(self, message: str = "it failed", report: Report = Report.USER_ERROR, worker: str = "worker-1") -> None:
        """Report an error."""
        self.say(report, message=message, worker=worker)


TYPES: Final = {str: "STRING", int: "LONG", float: "DOUBLE", bool: "BOOLEAN"}
