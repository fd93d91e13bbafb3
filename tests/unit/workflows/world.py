"""A small world to test the `workflows` processor in: its commands folded one by one, and what comes of them.

world = World()
world.push(run_strategy="SEQUENTIAL")
world.start("a")
assert world.seen() == "1r"
"""

import json
from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

from kapelle.processors.effects import Emit, Send
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.wiring import PERMIT_INTERNAL, RUN_INTERNAL, WORKFLOW_INTERNAL
from kapelle.processors.workflows import WorkflowTables, workflows
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from kapelle.topology.tables import MemoryStore, ShardState

KEY = "etl"
NOW_MS = 1_700_000_000_000
E = TypeVar("E")
OUTCOMES = (c.CommandSettled, c.CommandRefused, c.InstanceCreated, c.StartDuplicated)
LETTERS = {
    InstanceStatus.CREATED: "q",
    InstanceStatus.IN_PROGRESS: "r",
    InstanceStatus.STOPPED: "S",
    InstanceStatus.FAILED: "F",
    InstanceStatus.SUCCEEDED: "✓",
    InstanceStatus.TIMED_OUT: "T",
}


def definition(workflow: dict[str, Any] | None = None, **request: Any) -> str:
    """A push as JSON; what is given replaces what a plain one has."""
    steps = [{"step": {"id": "load", "type": "NoOp"}}]
    whole: dict[str, Any] = {
        "properties": {"owner": "ann"},
        "workflow": {"id": KEY, "steps": steps, **(workflow or {})},
        **request,
    }
    return json.dumps({name: value for name, value in whole.items() if value is not None})


def _check_outcome(command: Contract, events: list[Any]) -> None:
    """A command that names a request has one outcome, which is the last event that names it."""
    request_id = getattr(command, "request_id", None)
    named = [event for event in events if getattr(event, "request_id", None) == request_id]
    if request_id is not None:
        assert [isinstance(event, OUTCOMES) for event in named] == [False] * (len(named) - 1) + [True], named


class World:
    """The tables of one partition, the history that made them, and what was sent to others."""

    def __init__(self) -> None:
        self.state: ShardState[WorkflowTables] = ShardState(workflows, 0, MemoryStore())
        self.history: list[tuple[str, Any]] = []
        self.sent: list[tuple[str, Any]] = []
        self.continued: deque[tuple[str, Any]] = deque()
        self.now_ms = NOW_MS
        self.count = 0

    def decide(self, command: Contract | TimerDue, key: str = KEY) -> list[Any]:
        """Fold one command, and give its events. What the processor asks itself waits in `continued`."""
        events: list[Any] = []
        message = Message(key, command, "0")
        for effect in list(workflows.deciders[type(command)](message, self.state.reader, self.now_ms)):
            if isinstance(effect, Emit):
                assert type(effect.value) in workflows.events.contracts
                workflows.appliers[type(effect.value)](Message(key, effect.value, ""), self.state.writer)
                events.append(effect.value)
                self.history.append((key, effect.value))
            elif not isinstance(effect, Send):
                raise AssertionError(f"Expected no {effect}")
            elif effect.stream is WORKFLOW_INTERNAL:
                self.continued.append((effect.key, effect.value))
            else:
                assert effect.stream in (RUN_INTERNAL, PERMIT_INTERNAL)
                self.sent.append((effect.key, effect.value))
        return events

    def do(self, command: Contract, key: str = KEY) -> list[Any]:
        """Fold a command and all that it asks the processor itself."""
        events = self.decide(command, key)
        while self.continued:
            to, value = self.continued.popleft()
            events += self.decide(value, to)
        _check_outcome(command, events)
        return events

    def pass_time(self, until_ms: int, *, most: int = 10_000) -> list[Any]:
        """Let time pass: each timer fires when it is due."""
        events: list[Any] = []
        for _ in range(most):
            due = self.state.due(until_ms, 1)
            if not due:
                self.now_ms = max(self.now_ms, until_ms)
                return events
            key, name, due_at_ms = due[0]
            self.now_ms = max(self.now_ms, due_at_ms)
            events += self.fire(key, name, due_at_ms)
        raise AssertionError(f"Expected fewer than {most:,} timers")

    def jump(self, to_ms: int, *, most: int = 10_000) -> list[Any]:
        """Let nobody run until then, and fire what is due."""
        self.now_ms = max(self.now_ms, to_ms)
        return self.pass_time(self.now_ms, most=most)

    def fire(self, key: str, name: str, due_at_ms: int) -> list[Any]:
        """Decide on a timer, which must cancel it or move it."""
        events = self.decide(TimerDue(name, due_at_ms), key)
        while self.continued:
            to, value = self.continued.popleft()
            events += self.decide(value, to)
        assert self.state.reader.timers.due_at_ms(key, name) != due_at_ms, f"{name} is due still"
        return events

    def fresh(self) -> str:
        """A request id that was not used before."""
        self.count += 1
        return f"request-{self.count}"

    def push(self, workflow: dict[str, Any] | None = None, *, request_id: str = "", **request: Any) -> list[Any]:
        """Push a version; a run strategy is put into the properties."""
        if "run_strategy" in request:
            request["properties"] = {"owner": "ann", "run_strategy": request.pop("run_strategy")}
        return self.do(c.PushVersion(request_id or self.fresh(), "ann", definition(workflow, **request)))

    def switch(self, strategy: Any) -> list[Any]:
        """Change the run strategy."""
        return self.do(c.ChangeProperties(self.fresh(), "ann", json.dumps({"run_strategy": strategy})))

    def start(self, *request_ids: str, **fields: Any) -> list[Any]:
        """Start a batch of instances."""
        return self.do(c.StartInstances("ann", tuple(Start(request_id, **fields) for request_id in request_ids)))

    def trigger(self, *request_ids: str, **fields: Any) -> list[Any]:
        """A trigger starts a batch of instances."""
        return self.do(c.StartTriggered("ann", tuple(Start(request_id, **fields) for request_id in request_ids)))

    def end(self, instance_id: int, status: InstanceStatus = InstanceStatus.SUCCEEDED, run_id: int = 1) -> list[Any]:
        """`runs` reports that a run has ended."""
        return self.do(c.RecordRunEnd(instance_id, run_id, status, "it ended"))

    def fail(self, instance_id: int, run_id: int = 1) -> list[Any]:
        return self.end(instance_id, InstanceStatus.FAILED, run_id)

    def restart(self, instance_id: int, *, params: str | None = "{}", **fields: Any) -> list[Any]:
        """`runs` asks for a new run."""
        restart = '{"policy":"RESTART_FROM_BEGINNING"}'
        return self.do(
            c.QueueRun(fields.pop("request_id", self.fresh()), "ann", instance_id, restart, params, **fields)
        )

    def terminate(self, instance_id: int, action: Action = Action.STOP, *, request_id: str = "") -> list[Any]:
        return self.do(c.TerminateInstance(request_id or self.fresh(), "ann", instance_id, action, "enough"))

    def terminate_all(self, action: Action = Action.STOP, *, request_id: str = "") -> list[Any]:
        return self.do(c.TerminateInstances(request_id or self.fresh(), "ann", action, "enough"))

    def unblock(self, instance_id: int | None = None, *, request_id: str = "") -> list[Any]:
        return self.do(c.UnblockInstances(request_id or self.fresh(), "ann", "mended", instance_id))

    def set_breakpoint(self, step_id: str = "load", *, request_id: str = "", **fields: Any) -> list[Any]:
        return self.do(c.SetBreakpoint(request_id or self.fresh(), "ann", step_id, **fields))

    def delete_breakpoint(self, step_id: str = "load", *, request_id: str = "", **fields: Any) -> list[Any]:
        return self.do(c.DeleteBreakpoint(request_id or self.fresh(), "bob", step_id, **fields))

    def seen(self) -> str:
        """All instances with their latest runs: "1F 2r 3q", and "1.2r" for a second run."""
        rows = self.state.reader.instances.prefix((KEY,))
        return " ".join(
            f"{number}{f'.{row.run_id}' if row.run_id > 1 else ''}{LETTERS[row.status]}" for (_, number), row in rows
        )

    def sent_of(self, contract: type[E]) -> list[tuple[str, E]]:
        return [(key, value) for key, value in self.sent if isinstance(value, contract)]

    def replayed(self) -> str:
        """The fingerprint of the tables that history alone makes."""
        fresh = ShardState(workflows, 0, MemoryStore())
        for key, event in self.history:
            workflows.appliers[type(event)](Message(key, event, ""), fresh.writer)
        return fresh.fingerprint()


def only(contract: type[E], events: Iterable[Any]) -> E:
    """The one event of that type."""
    found = [event for event in events if isinstance(event, contract)]
    assert len(found) == 1, f"expected one {contract.__name__}, found {found}"
    return found[0]


def types(events: Iterable[Any]) -> list[str]:
    return [type(event).__name__ for event in events]
