"""Ids of traces and spans: hashes of what they are about, so that whoever tells of the same thing uses the same ids.

| trace | is named by |
|---|---|
| of a signal, and of all that it sets off | the `traceparent` that it came with, else its name and number |
| of an instance that no signal started | the `traceparent` of its start, else its workflow and number |

No id is remembered, and none is made of time or chance: a process that is killed, and another that takes its place,
tell the same spans once more.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import msgspec

TRACE_BYTES: Final = 16
SPAN_BYTES: Final = 8
SAMPLED: Final = 0x01
RATIO_BITS: Final = 64  # of a trace id, as many as OpenTelemetry looks at


class Trace(msgspec.Struct, frozen=True):
    """What spans are part of. `parent_id` is the span of a stranger, if the trace began with one."""

    id: int
    parent_id: int | None = None
    is_sampled: bool = True


class Ids:
    """Makes ids for one deployment, of which `ratio` says how many traces to tell of."""

    def __init__(self, namespace: str, ratio: float = 1.0) -> None:
        self._namespace = namespace
        self._limit = round(ratio * 2**RATIO_BITS)

    def trace_of_signal(self, name: str, number: int, traceparent: str | None) -> Trace:
        """The trace that a signal is in."""
        return given(traceparent) or self._trace("signal", name, number)

    def trace_of_instance(self, workflow_id: str, instance_id: int, traceparent: str | None) -> Trace:
        """The trace of an instance that no signal started."""
        return given(traceparent) or self._trace("instance", workflow_id, instance_id)

    def signal(self, name: str, number: int) -> int:
        return self._span("signal", name, number)

    def firing(self, workflow_id: str, trigger_id: str, signals: Mapping[str, int]) -> int:
        """The span of a trigger's signals coming together, in whatever order they are told."""
        return self._span(
            "firing", workflow_id, trigger_id, *(part for signal in sorted(signals.items()) for part in signal)
        )

    def queued(self, workflow_id: str, instance_id: int, run_id: int) -> int:
        return self._span("queued", workflow_id, instance_id, run_id)

    def run(self, workflow_id: str, instance_id: int, run_id: int) -> int:
        return self._span("run", workflow_id, instance_id, run_id)

    def attempt(self, run_span: int, step_id: str, iteration: int, attempt: int) -> int:
        return self._span("attempt", run_span, step_id, iteration, attempt)

    def _trace(self, *named: str | int) -> Trace:
        number = _hashed(TRACE_BYTES, self._namespace, *named)
        return Trace(number, is_sampled=number % 2**RATIO_BITS < self._limit)

    def _span(self, *named: str | int) -> int:
        return _hashed(SPAN_BYTES, self._namespace, *named)


def given(traceparent: str | None) -> Trace | None:
    """The trace that somebody outside has begun. What they do not sample, we do not tell of."""
    if not traceparent:
        return None
    parts = traceparent.split("-")
    try:
        trace_id, span_id, flags = int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)
    except (IndexError, ValueError):
        return None
    if not (0 < trace_id < 2 ** (8 * TRACE_BYTES) and 0 < span_id < 2 ** (8 * SPAN_BYTES)):
        return None
    return Trace(trace_id, span_id, bool(flags & SAMPLED))


def _hashed(size_bytes: int, *named: str | int) -> int:
    digest = blake2b(msgspec.json.encode(named), digest_size=size_bytes, person=b"kapelle.traces").digest()
    return int.from_bytes(digest, "big") or 1  # nought is no id
