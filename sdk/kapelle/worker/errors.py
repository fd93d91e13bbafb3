"""What can go wrong in a worker, by who must act.

Exception
├── StepFailure                raised by a step, and reported to the engine
│   ├── Retryable                  the work failed; another attempt may help      USER_ERROR
│   ├── NonRetryable               no other attempt will help                     FATAL_ERROR
│   └── PlatformFailure            what the work stands on failed                 PLATFORM_ERROR
├── WorkerError
│   ├── BadStep                    the author of the step: it cannot be served as it is written
│   ├── BadParameter               the author of the workflow: the task does not fit the step     FATAL_ERROR
│   ├── BadOutput                  the author of the step: its result cannot be written down      FATAL_ERROR
│   ├── TransportUnavailable       nobody: the runner tries again
│   └── TransportRefused           the operator: credentials, addresses, settings
│       └── ShareGroupsMissing         the operator: the broker has no share groups
└── asyncio.CancelledError
    └── Cancelled                  the task is no longer wanted
"""

import asyncio


class StepFailure(Exception):
    """A step says that it failed, and what kind of failure it is."""


class Retryable(StepFailure):
    """The work failed. The step's retry policy for errors says whether there is another attempt."""


class NonRetryable(StepFailure):
    """The work failed, and would fail again: there is no other attempt."""


class PlatformFailure(StepFailure):
    """What the work stands on failed, not the work. The retry policy for the platform counts."""


class Cancelled(asyncio.CancelledError):
    """The task is no longer wanted: it was stopped, timed out, or given to another worker.

    It is no `Exception`, so that a step that catches those does not go on by accident.
    """


class WorkerError(Exception):
    """Something about the worker, rather than about its work."""


class BadStep(WorkerError):
    """A function cannot be served as a step."""


class BadParameter(WorkerError):
    """A task does not have what its step's function asks for."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        super().__init__(f"Expected parameter {name!r} to be {expected}, but found {found}")
        self.name = name
        self.expected = expected
        self.found = found


class BadOutput(WorkerError):
    """What a step returned cannot be written down as output parameters. `path` says which part of it."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        where = f"output {path!r}" if path else "the step's output"
        super().__init__(f"Expected {where} to be {expected}, but found {found}")
        self.path = path
        self.expected = expected
        self.found = found


class TransportUnavailable(WorkerError):
    """The engine cannot be reached now. Nothing was lost: the same can be tried again."""


class TransportRefused(WorkerError):
    """The engine does not let this worker in, or does not understand it. Trying again will not help."""


class ShareGroupsMissing(TransportRefused):
    """Share groups were asked for, and the broker or the client library does not have them."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Expected a broker with share groups (Apache Kafka 4.1 or later), but {why}")
