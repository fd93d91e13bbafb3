"""Breakpoints in tests: what a test has set, and how it deletes it again.

breakpoint = engine.breakpoint("etl", "load")
run = engine.start("etl")                        # its step `load` pauses
breakpoint.delete()                              # and continues
"""

from __future__ import annotations

from typing import Protocol, Unpack

from kapelle.client.options import Precision
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.processors.workflows.places import Place
from kapelle.schemas import contracts as c

Request = (
    c.PushVersion
    | c.SetBreakpoint
    | c.DeleteBreakpoint
    | c.SetLimit
    | c.RemoveLimit
    | c.ActOnStep
    | c.PauseSchedules
    | c.ResumeSchedules
    | c.StartBackfill
    | c.ActOnBackfill
)


class Requests(Protocol):
    """What breakpoints need of the engine: it takes requests."""

    author: str

    def request(self, stream: Stream, key: str, command: Request) -> None: ...

    def request_id(self) -> str: ...


class BreakpointHandle:
    """A breakpoint of a workflow."""

    def __init__(self, engine: Requests, workflow_id: str, step_id: str, **only: Unpack[Precision]) -> None:
        self.engine = engine
        self.workflow_id = workflow_id
        self.step_id = step_id
        self.version = only.get("version")
        self.instance_id = only.get("instance_id")
        self.run_id = only.get("run_id")
        self.attempt = only.get("attempt")

    def set(self) -> None:
        """Set it, or set it again. Raises `Refused`."""
        command = c.SetBreakpoint(
            request_id=self.engine.request_id(),
            author=self.engine.author,
            step_id=self.step_id,
            version=self.version,
            instance_id=self.instance_id,
            run_id=self.run_id,
            attempt=self.attempt,
        )
        self.engine.request(WORKFLOW_COMMANDS, self.workflow_id, command)

    def delete(self, *, resume: bool = True) -> None:
        """Delete it. The attempts that it holds continue, unless `resume` is false. Raises `Refused`."""
        command = c.DeleteBreakpoint(
            request_id=self.engine.request_id(),
            author=self.engine.author,
            step_id=self.step_id,
            version=self.version,
            instance_id=self.instance_id,
            run_id=self.run_id,
            attempt=self.attempt,
            resume=resume,
        )
        self.engine.request(WORKFLOW_COMMANDS, self.workflow_id, command)


def handle_at(engine: Requests, place: Place) -> BreakpointHandle:
    """The breakpoint in a place of the table."""
    workflow_id, step_id, version, instance_id, run_id, attempt = place
    return BreakpointHandle(
        engine,
        workflow_id,
        step_id,
        version=version or None,
        instance_id=instance_id or None,
        run_id=run_id or None,
        attempt=attempt or None,
    )
