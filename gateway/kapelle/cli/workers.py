"""Steps that a command runs: the transport of tasks, Http steps, and the exit codes of errors."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kapelle.broker import is_bad_setting
from kapelle.cli import errors as e
from kapelle.cli.failures import kafka_error
from kapelle.cli.server import token

if TYPE_CHECKING:
    from kapelle.worker import Transport, Worker


def http_transport(url: str, bearer: str | None = None) -> "Transport":
    """The way to tasks over a server."""
    from kapelle.worker import HttpTransport  # noqa: PLC0415 - slow to import

    return HttpTransport(url, bearer or token())


def serve_http(worker: "Worker", allow: Sequence[str] | None) -> None:
    """Let a worker serve Http steps, if there are hosts that it may reach."""
    if allow:
        from kapelle.worker import HttpStep  # noqa: PLC0415 - slow to import

        worker.add("Http", HttpStep(allow, evaluate=_evaluated))


def _evaluated(expression: str, values: Mapping[str, object]) -> object:
    """What the `state_expr` of an Http step says of an answer."""
    from kapelle.processors.sel import Sel, SelError, seeded  # noqa: PLC0415 - slow to import
    from kapelle.worker import NonRetryable  # noqa: PLC0415

    try:
        host = seeded(uuid.uuid4().hex, int(time.time() * 1000))
        return Sel().evaluate(expression, dict(values), host).value
    except SelError as error:
        raise NonRetryable(f"Expected state_expr to give a state, but {error}") from error


@contextmanager
def served() -> Iterator[None]:
    """What the worker's own errors mean for a command."""
    from kapelle.worker import BadStep, TransportRefused, TransportUnavailable  # noqa: PLC0415 - slow to import

    try:
        yield
    except BadStep as error:
        raise e.NotAWorker(str(error)) from error
    except TransportRefused as error:
        raise e.InTheWay(str(error)) from error
    except TransportUnavailable as error:
        cause = kafka_error(error)
        if cause is not None and is_bad_setting(cause):
            raise e.BadClientSetting(f"librdkafka rejected the settings: {cause.str()}") from error
        raise e.NotInTime(str(error)) from error
