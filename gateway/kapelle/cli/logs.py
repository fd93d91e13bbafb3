"""Log lines on stderr: one line for each thing that happened, as key=value pairs or as JSON.

    2026-07-01T12:00:00.000Z level=info logger=kapelle.restore message=restoring rows=120000 rows_left=80000

Whoever logs with `extra={"fields": {...}}` adds pairs of its own.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from kapelle.schemas.headers import rfc3339

_PLAIN: Final = re.compile(r"[\w./:@,+*%-]+")


class LogFormat(StrEnum):
    """What a log line looks like."""

    PAIRS = "pairs"
    JSON = "json"


class LogLevel(StrEnum):
    """The minimum level of lines to show."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


GRAVITY: Final = list(LogLevel).index


class Lines(logging.Formatter):
    """Formats records as single lines, whatever is in them."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        pairs: dict[str, object] = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            pairs["error"] = self.formatException(record.exc_info)
        at = rfc3339(int(record.created * 1000)).decode()
        if self._form is LogFormat.JSON:
            return json.dumps({"at": at, **pairs}, ensure_ascii=False, default=str)
        return " ".join([at, *(f"{name}={_pair_value(value)}" for name, value in pairs.items())])


@contextmanager
def logged_to_stderr(form: LogFormat, level: LogLevel) -> Iterator[None]:
    """Within this block lines go to stderr in one form: ours, and of all other loggers warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    others = max(level, LogLevel.WARNING, key=GRAVITY)
    with _handled(logging.getLogger(), handler, others), _handled(logging.getLogger("kapelle"), handler, level):
        yield


@contextmanager
def _handled(logger: logging.Logger, handler: logging.Handler, level: LogLevel) -> Iterator[None]:
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level.value.upper())
    try:
        yield
    finally:
        logger.handlers, _, logger.propagate = before
        logger.setLevel(before[1])


def _pair_value(value: object) -> str:
    """A value without blanks as it is, any other as a JSON string, so that a line stays a line."""
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
