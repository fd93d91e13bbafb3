"""The context of a step: the facts of its attempt, and its connection to the engine."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kapelle.schemas.contracts import Task
from kapelle.worker.errors import BadOutput, Cancelled
from kapelle.worker.outputs import signal_json

SIGNALS_MAX: Final = 100  # that one step may announce
LINES_MAX: Final = 100
LINE_CHARS_MAX: Final = 1_000
LOG_CHARS_MAX: Final = 16_000
MESSAGE_CHARS_MAX: Final = 4_000

_log = logging.getLogger("kapelle.worker.step")


class Context:
    """Handed to a step that has a parameter annotated `Context`.

    `cancelled` is an event that is set when the task is no longer wanted. `heartbeat`, `log` and `raise_if_cancelled`
    then raise `Cancelled`; `cancelled.wait(seconds)` is a sleep that ends early. Async functions are cancelled at their
    next `await`.
    """

    def __init__(self, task: Task, beat: Callable[["Context"], None] = lambda _: None) -> None:
        self.token = task.token
        self.workflow_id = task.workflow_id
        self.instance_id = task.instance_id
        self.run_id = task.run_id
        self.step_id = task.step_id
        self.attempt = task.attempt
        self.iteration = task.iteration
        self.type = task.type
        self.sub_type = task.sub_type
        self.idempotency_key = task.idempotency_key  # the same for every attempt at this work
        self.deadline_at_ms = task.deadline_at_ms
        self.params: dict[str, Any] = {}  # the JSON of the task, for the author of the step
        self.cancelled = threading.Event()
        self.cancel_reason = ""
        self._beat = beat
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._signals: list[bytes] = []
        self._lock = threading.Lock()  # a step writes, the runner reads

    @property
    def deadline(self) -> datetime:
        """The deadline of the attempt."""
        return datetime.fromtimestamp(self.deadline_at_ms / 1000, UTC)

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the task was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled(self.cancel_reason)

    def heartbeat(self, message: str = "") -> None:
        """Report progress. The worker renews the lease without this call too."""
        self.raise_if_cancelled()
        if message:
            self._keep(message)
        self._beat(self)
        self.raise_if_cancelled()

    def log(self, text: object) -> None:
        """Write a line to the log, and to the timeline with the next heartbeat or the result.

        If there are too many lines between two of these, the latest are sent.
        """
        self.raise_if_cancelled()
        self._keep(str(text))
        _log.info("%s", text, extra={"fields": {"step": self.step_id, "workflow": self.workflow_id}})

    def announce(
        self, name: str, params: Mapping[str, str | int] | None = None, payload: Mapping[str, object] | None = None
    ) -> None:
        """Announce a signal if this step succeeds. Signals with the same name and parameters are the same signal."""
        self.raise_if_cancelled()
        if len(self._signals) == SIGNALS_MAX:
            raise BadOutput("signals", f"at most {SIGNALS_MAX} of one step", "more")
        self._signals.append(signal_json(name, params or {}, payload or {}))

    def announced(self) -> str | None:
        """The signals to be announced, as JSON; None if there are none. Called by the runner."""
        return f"[{b','.join(self._signals).decode()}]" if self._signals else None

    def cancel(self, reason: str) -> None:
        """Cancel the step. Called by the runner."""
        self.cancel_reason = self.cancel_reason or reason
        self.cancelled.set()

    def said(self) -> str:
        """The lines that were not sent yet, as one text. Called by the runner."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
        return "\n".join(lines)[-LOG_CHARS_MAX:]

    def unsaid(self, text: str) -> None:
        """Keep lines that could not be sent for the next report. Called by the runner."""
        with self._lock:
            self._lines = deque([*text.split("\n"), *self._lines], LINES_MAX)

    def _keep(self, text: str) -> None:
        with self._lock:
            self._lines.append(written(text[:LINE_CHARS_MAX]))


def written(text: str) -> str:
    """The text in valid Unicode: a lone surrogate, as in some file names, becomes `?`."""
    return text.encode("utf-8", "replace").decode()
