"""The errors of a worker, by who must act.

Exception
├── StepFailure                raised by a step, and reported to the engine
│   ├── Retryable                  the work failed; another attempt may help      USER_ERROR
│   ├── NonRetryable               no other attempt will help                     FATAL_ERROR
│   └── PlatformFailure            the platform failed, not the work              PLATFORM_ERROR
├── WorkerError
│   ├── BadStep                    the author of the step: it cannot be served as it is written
│   ├── BadParameter               the author of the workflow: the task does not fit the step     FATAL_ERROR
│   ├── BadOutput                  the author of the step: its result cannot be encoded           FATAL_ERROR
│   ├── TransportUnavailable       none: the runner retries
│   └── TransportRefused           the operator: credentials, addresses, settings
│       └── ShareGroupsMissing         the operator: the broker has no share groups
└── asyncio.CancelledError
    └── Cancelled                  the task is no longer wanted
"""

import asyncio


class StepFailure(Exception):
    """A failure that a step raises, by kind."""


class Retryable(StepFailure):
    """The work failed. The step's retry policy for errors applies."""


class NonRetryable(StepFailure):
    """The work failed, and a retry would fail again. There is no other attempt."""


class PlatformFailure(StepFailure):
    """The platform failed, not the work. The retry policy for platform failures applies."""


class Cancelled(asyncio.CancelledError):
    """The task was cancelled: it was stopped, timed out, or given to another worker.

    It is not an `Exception`, so `except Exception` does not swallow it.
    """


class WorkerError(Exception):
    """An error of the worker itself, not of a step."""


class BadStep(WorkerError):
    """The function cannot be used as a step."""


class BadParameter(WorkerError):
    """A task lacks a parameter that the step's function needs, or the value does not fit."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        super().__init__(f"Expected parameter {name!r} to be {expected}, but found {found}")
        self.name = name
        self.expected = expected
        self.found = found


class BadOutput(WorkerError):
    """The result of a step cannot be encoded as output parameters. `path` names the part."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        where = f"output {path!r}" if path else "the step's output"
        super().__init__(f"Expected {where} to be {expected}, but found {found}")
        self.path = path
        self.expected = expected
        self.found = found


class TransportUnavailable(WorkerError):
    """The engine is unreachable. Nothing is lost: the call can be retried."""


class TransportRefused(WorkerError):
    """The engine refuses this worker or its requests. A retry does not help."""


class ShareGroupsMissing(TransportRefused):
    """Share groups were requested, but the broker or the client library does not support them."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Expected a broker with share groups (Apache Kafka 4.1 or later), but {why}")
