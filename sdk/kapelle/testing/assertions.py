"""Assertions on runs of the test kit. One that fails shows what happened instead.

assert_run(run, "SUCCEEDED")
assert_step(run, "load", "SUCCEEDED", attempts=2)
assert_event(run, "StepChanged", step_id="load", reason="no such table")

AssertionError: Expected step 'load' of etl/1 to be SUCCEEDED, but it is FATALLY_FAILED: no such table

  00:00:00.000  ·         CREATED
  …
"""

from typing import Final, NoReturn

from kapelle.processors.runs.timeline import Entry
from kapelle.schemas import Contract
from kapelle.schemas.contracts import StepStatus
from kapelle.testing.engine import RunHandle

LINES_MAX: Final = 60
DAY_MS: Final = 86_400_000


def assert_run(run: RunHandle, status: str) -> None:
    """Assert that the instance has this status."""
    if run.status != status:
        _fail(run, f"Expected {_name(run)} to be {status}, but it is {run.status}")


def assert_step(run: RunHandle, step_id: str, status: str, *, attempts: int | None = None) -> None:
    """Assert that a step has this status, and optionally this number of attempts."""
    row = run.step_rows().get(step_id)
    what = f"step {step_id!r} of {_name(run)}"
    if row is None:
        known = ", ".join(run.steps) or "none"
        _fail(run, f"Expected {what} to be {status}, but it was not created: there is {known}")
    elif row.status != status:
        reason = run.changes(step_id)[-1].reason
        _fail(run, f"Expected {what} to be {status}, but it is {row.status}{': ' + reason if reason else ''}")
    elif attempts is not None and row.attempt != attempts:
        _fail(run, f"Expected {what} to be {status} at attempt {attempts}, but it is at attempt {row.attempt}")


def assert_not_run(run: RunHandle, step_id: str) -> None:
    """Assert that the run did not execute this step."""
    status = run.steps.get(step_id, StepStatus.UNSATISFIED)
    if status is not StepStatus.UNSATISFIED:
        _fail(run, f"Expected step {step_id!r} of {_name(run)} not to run, but it is {status}")


def assert_event(run: RunHandle, kind: str, **fields: object) -> Contract:
    """Assert that the history of the instance has an event of this kind with these fields. Returns the first."""
    of_kind = [event for event in run.events() if type(event).__name__ == kind]
    for event in of_kind:
        if all(getattr(event, name, None) == value for name, value in fields.items()):
            return event
    expected = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    found = f"{len(of_kind)} of them without these fields" if of_kind else "none"
    return _fail(run, f"Expected an event {kind}({expected}) of {_name(run)}, but found {found}")


def told(run: RunHandle) -> str:
    """The timeline of a run as text, its times counted from the start."""
    entries = run.timeline()
    first_ms = entries[0].at_ms if entries else 0
    width = max((len(_where(entry)) for entry in entries), default=0)
    lines = [
        f"  {_clock(entry.at_ms - first_ms)}  {_where(entry).ljust(width)}  {entry.body.text}" for entry in entries
    ]
    left_out = len(lines) - LINES_MAX
    return "\n".join([f"  … {left_out} more before", *lines[-LINES_MAX:]] if left_out > 0 else lines)


def _fail(run: RunHandle, message: str) -> NoReturn:
    __tracebackhide__ = True  # pytest then shows the line of the test, not ours
    raise AssertionError(f"{message}\n\n{told(run)}")


def _name(run: RunHandle) -> str:
    return f"{run.workflow_id}/{run.instance_id}"


def _clock(ms: int) -> str:
    days, rest = divmod(ms, DAY_MS)
    seconds, ms = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"
    return f"{days} d {clock}" if days else clock


def _where(entry: Entry) -> str:
    if entry.step_id is None:
        return "·"
    return f"{entry.step_id} #{entry.attempt}" if entry.attempt is not None and entry.attempt > 1 else entry.step_id
