"""Whether a failed attempt is retried, and after which delay.

| failure | counted as | limit | delay |
|---|---|---|---|
| an error of the work | error | `error_retry_limit` | `error_retry_*` |
| a failure of the platform | platform | `platform_retry_limit` | `platform_retry_*` |
| a lost lease | platform | `platform_retry_limit` | none |
| a time-out of the attempt | timeout | `timeout_retry_limit` | `timeout_retry_*` |

The delay before retry *n* (from 0) is `backoff · exponent^n`, at most the limit, and then up to a quarter less: the
jitter keeps steps that failed together from coming back together. It is made from the identity of the attempt, so a
replay waits as long. A step that says that it is not idempotent is never tried again by the system.
"""

from collections.abc import Callable
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

from kapelle.processors.definitions import Backoff, RetryPolicy, Step
from kapelle.processors.params import BadNumber, number_of
from kapelle.schemas.contracts import StepStatus

JITTER: Final = 0.25
DELAY_S_MAX: Final = 86_400
EXPONENT_POWER_MAX: Final = 100  # a retry limit is 99 at most

Lookup = Callable[[str], object]


class Kind(StrEnum):
    """What went wrong, as far as retries look at it."""

    ERROR = "error"
    PLATFORM = "platform"
    TIMEOUT = "timeout"


# The state of an attempt that is tried again, and of one that is not.
WAITS_AS: Final = {
    Kind.ERROR: StepStatus.USER_FAILED,
    Kind.PLATFORM: StepStatus.PLATFORM_FAILED,
    Kind.TIMEOUT: StepStatus.TIMEOUT_FAILED,
}
ENDS_AS: Final = {
    Kind.ERROR: StepStatus.FATALLY_FAILED,
    Kind.PLATFORM: StepStatus.FATALLY_FAILED,
    Kind.TIMEOUT: StepStatus.TIMED_OUT,
}


class Retry(msgspec.Struct, frozen=True):
    """Try again after this long."""

    delay_ms: int


def retry_of(step: Step, kind: Kind, made: int, *, lookup: Lookup, seed: str) -> Retry | None:
    """Whether there is another attempt after `made` retries of this kind, and when."""
    if not step.idempotent or made >= limit_of(step.retry_policy, kind, lookup):
        return None
    return Retry(delay_ms(step.retry_policy.backoff, kind, made, lookup=lookup, seed=seed))


def limit_of(policy: RetryPolicy, kind: Kind, lookup: Lookup) -> int:
    """How many retries of a kind there may be."""
    return _number(policy, RetryPolicy(), f"{kind}_retry_limit", lookup)


def delay_ms(backoff: Backoff, kind: Kind, made: int, *, lookup: Lookup, seed: str) -> int:
    """How long to wait before the next attempt."""
    default = Backoff()
    seconds = _number(backoff, default, f"{kind}_retry_backoff_in_secs", lookup)
    if backoff.type == "EXPONENTIAL_BACKOFF":
        exponent = _number(backoff, default, f"{kind}_retry_exponent", lookup)
        limit = _number(backoff, default, f"{kind}_retry_limit_in_secs", lookup)
        seconds = min(seconds * exponent ** min(made, EXPONENT_POWER_MAX), limit)
    full_ms = min(seconds, DELAY_S_MAX) * 1000
    return full_ms - int(full_ms * JITTER * _share(f"{seed}/{kind}/{made}"))


def _number(given: msgspec.Struct, default: msgspec.Struct, field: str, lookup: Lookup) -> int:
    """A number of the policy. What cannot be read when it is needed counts as not written."""
    try:
        return number_of(getattr(given, field), lookup)
    except BadNumber:
        return int(getattr(default, field))


def _share(seed: str) -> float:
    """A number from 0 to 1 that is the same for the same seed."""
    return int.from_bytes(sha256(seed.encode()).digest()[:4], "big") / (1 << 32)
