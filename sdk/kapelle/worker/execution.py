"""Executes one task: from the parameters to a report. An exception becomes a report too.

| raised | report |
|---|---|
| `Cancelled`, or anything after a cancellation | none: the engine ignores it |
| `NonRetryable`, `BadParameter`, `BadOutput` | FATAL_ERROR |
| `PlatformFailure` | PLATFORM_ERROR |
| `Retryable`, any other | USER_ERROR |
"""

import asyncio
import inspect
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kapelle.schemas.contracts import Report, Task
from kapelle.worker.context import MESSAGE_CHARS_MAX, Context, written
from kapelle.worker.errors import (
    BadOutput,
    BadParameter,
    Cancelled,
    NonRetryable,
    PlatformFailure,
    Retryable,
    StepFailure,
)
from kapelle.worker.outputs import outputs_json
from kapelle.worker.steps import Step
from kapelle.worker.transport import TaskReport

FRAMES_MAX: Final = 6

# Who raises one of these has said all in its message.
KINDS: Final[Mapping[type[BaseException], Report]] = {
    NonRetryable: Report.FATAL_ERROR,
    PlatformFailure: Report.PLATFORM_ERROR,
    Retryable: Report.USER_ERROR,
    StepFailure: Report.USER_ERROR,
    BadParameter: Report.FATAL_ERROR,
    BadOutput: Report.FATAL_ERROR,
}


def run(step: Step, task: Task, context: Context) -> TaskReport | None:
    """Run a step that is a plain function. None: it was cancelled."""
    try:
        returned = step.function(**step.arguments(task.params, context))
        return _done(task, context, returned)
    except BaseException as error:  # noqa: BLE001 - a step may raise what it likes, and the worker goes on
        return _failed(task, context, error)


async def run_async(step: Step, task: Task, context: Context) -> TaskReport | None:
    """Run a step that is an async function. None: it was cancelled."""
    try:
        returned = step.function(**step.arguments(task.params, context))
        if inspect.isawaitable(returned):
            returned = await returned
        return _done(task, context, returned)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(task, context, error)


def run_here(step: Step, task: Task, context: Context) -> TaskReport | None:
    """Run any step in this thread, with an event loop of its own if it needs one."""
    return asyncio.run(run_async(step, task, context)) if step.is_async else run(step, task, context)


def _done(task: Task, context: Context, returned: object) -> TaskReport | None:
    if context.cancelled.is_set():
        return None
    signals = context.announced()
    outputs = outputs_json(returned, beside_bytes=len((signals or "").encode()))
    return TaskReport(task, Report.SUCCEEDED, "", outputs, context.said(), signals)


def _failed(task: Task, context: Context, error: BaseException) -> TaskReport | None:
    if context.cancelled.is_set() or isinstance(error, Cancelled):
        return None
    for kind, report in KINDS.items():
        if isinstance(error, kind):
            return TaskReport(task, report, _bounded(str(error) or kind.__name__), log=context.said())
    return TaskReport(task, Report.USER_ERROR, _bounded(_told(error)), log=context.said())


def _told(error: BaseException) -> str:
    """The type, the message and the last frames of a failure that nobody foresaw."""
    frames = traceback.extract_tb(error.__traceback__)[1:][-FRAMES_MAX:]  # the first is ours
    where = "".join(f"\n  {Path(f.filename).name}:{f.lineno} in {f.name}: {f.line or ''}".rstrip() for f in frames)
    return f"{type(error).__name__}: {error}{where}"


def _bounded(given: str) -> str:
    text = written(given)
    return text if len(text) <= MESSAGE_CHARS_MAX else text[: MESSAGE_CHARS_MAX - 1] + "…"
