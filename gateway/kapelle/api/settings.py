"""The settings of the API: its limits, and its tokens."""

from typing import Final

import msgspec

from kapelle.api.auth import Tokens
from kapelle.sources.endpoints import Endpoints
from kapelle.sources.hooks import Hooks
from kapelle.sources.sns import Sns

BODY_BYTES_MAX: Final = 1_000_000  # what one record of the log can hold


class ApiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and tokens. Without tokens every caller may do everything: for loopback only."""

    tokens: Tokens | None = None
    hooks: Hooks | None = None  # the webhooks that announce signals
    sns: Sns | None = None  # the Amazon SNS topics that announce signals
    endpoints: Endpoints | None = None  # the file of both, if it is reloaded when it changes
    wait_ms: int = 5_000  # how long a write waits for its effect, by default
    wait_ms_max: int = 30_000
    body_bytes_max: int = BODY_BYTES_MAX
    claim_ms: int = 5_000  # how long a poll waits for the engine to grant a task
    connections_max: int | None = None  # default: as many as the limit of open files allows
    idle_ms: int = 5_000  # how long a connection may stay open between two requests
    head_ms: int = 10_000  # how long the head of a request may take
    body_ms: int = 30_000  # how long the body of a request may take
    unread_ms: int = 30_000  # how long a client may take to read an answer
    cancelled_ms: int = 15 * 60 * 1000  # how long a cancelled task is reported to its worker
