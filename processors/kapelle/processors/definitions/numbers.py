"""Counts and durations that a definition writes as numbers or as text with parameters in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kapelle.processors.definitions.limits import BACKOFF_MS_MAX, BACKOFF_MS_MIN, EXPONENT_MAX, RETRIES_MAX
from kapelle.processors.definitions.models import Backoff, Parsable, RetryPolicy, Step
from kapelle.processors.definitions.problems import Report, at
from kapelle.processors.params import BadNumber, duration_ms, number_of, references
from kapelle.processors.params.durations import DURATION_MS_MAX

# What texts may refer to, as far as it can be told before a start.
Known = Mapping[str, Any]
Read = Callable[[Parsable, Callable[[str], Any]], int]


class Range(msgspec.Struct, frozen=True):
    """How a number is read, and the bounds that it must keep."""

    read: Read
    least: int
    most: int
    expected: str


RETRIES = Range(number_of, 0, RETRIES_MAX, f"an integer from 0 to {RETRIES_MAX}")
EXPONENT = Range(number_of, 1, EXPONENT_MAX, f"an integer from 1 to {EXPONENT_MAX}")
BACKOFF = Range(duration_ms, BACKOFF_MS_MIN, BACKOFF_MS_MAX, "a duration from 1 second to 1 day")
TIMEOUT = Range(duration_ms, 1, DURATION_MS_MAX, "a duration of at most 120 days such as 90, '90 s' or '1 day 2h'")


def check_number(written: Parsable, path: str, bounds: Range, *, known: Known, report: Report) -> None:
    """Report a number that cannot be read or is out of bounds. What only a run can tell is left to it."""
    if isinstance(written, str) and not known.keys() >= set(references(written)):
        return
    try:
        number = bounds.read(written, known.__getitem__)
    except BadNumber:
        report.add(path, written, bounds.expected)
        return
    if not bounds.least <= number <= bounds.most:
        report.add(path, written, bounds.expected)


def check_timeout(timeout: Parsable | None, path: str, *, known: Known, report: Report) -> None:
    """Report a time-out that is no duration."""
    if timeout is not None:
        check_number(timeout, path, TIMEOUT, known=known, report=report)


def check_step_numbers(step: Step, path: str, *, known: Known, report: Report) -> None:
    """Report wrong time-outs, retry limits and backoffs of a step."""
    check_timeout(step.timeout, at(path, "timeout"), known=known, report=report)
    policy, path = step.retry_policy, at(path, "retry_policy")
    for name in RetryPolicy.__struct_fields__:
        if name != "backoff":
            check_number(getattr(policy, name), at(path, name), RETRIES, known=known, report=report)
    for name in Backoff.__struct_fields__:
        if name != "type":
            bounds = EXPONENT if name.endswith("exponent") else BACKOFF
            here = at(at(path, "backoff"), name)
            check_number(getattr(policy.backoff, name), here, bounds, known=known, report=report)
