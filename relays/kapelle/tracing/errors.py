"""Errors of traces, by who must act.

TracingError
├── operator: BadEndpoint   the address that spans are sent to is none
└── time: NotExported       the collector has not taken what was sent
"""


class TracingError(Exception):
    """Anything that keeps spans from being sent."""


class BadEndpoint(TracingError):
    """Spans go to an address of HTTP."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            f"Expected the address of a collector such as http://127.0.0.1:4318, but found {endpoint[:200]!r}"
        )
        self.endpoint = endpoint


class NotExported(TracingError):
    """Spans were not taken, now. They are sent again."""
