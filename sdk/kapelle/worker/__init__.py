"""The worker that runs steps written as Python functions."""

from kapelle.worker.context import Context
from kapelle.worker.errors import (
    BadOutput,
    BadParameter,
    BadStep,
    Cancelled,
    NonRetryable,
    PlatformFailure,
    Retryable,
    ShareGroupsMissing,
    StepFailure,
    TransportRefused,
    TransportUnavailable,
    WorkerError,
)
from kapelle.worker.http import HttpTransport
from kapelle.worker.http_step import HttpStep
from kapelle.worker.kafka import Dispatch, KafkaTransport
from kapelle.worker.outputs import Output
from kapelle.worker.runner import Runner, WorkerSettings
from kapelle.worker.transport import Answer, TaskReport, Transport
from kapelle.worker.worker import Worker

__all__ = [
    "Answer",
    "BadOutput",
    "BadParameter",
    "BadStep",
    "Cancelled",
    "Context",
    "Dispatch",
    "HttpStep",
    "HttpTransport",
    "KafkaTransport",
    "NonRetryable",
    "Output",
    "PlatformFailure",
    "Retryable",
    "Runner",
    "ShareGroupsMissing",
    "StepFailure",
    "TaskReport",
    "Transport",
    "TransportRefused",
    "TransportUnavailable",
    "Worker",
    "WorkerError",
    "WorkerSettings",
]
