"""How the API behaves: its limits and who may do what."""

from typing import Final

import msgspec

from kapelle.api.auth import Tokens
from kapelle.sources.endpoints import Endpoints
from kapelle.sources.hooks import Hooks
from kapelle.sources.sns import Sns

BODY_BYTES_MAX: Final = 1_000_000  # what one record of the log can hold


class ApiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and tokens. Without tokens everyone may do everything: for loopback only."""

    tokens: Tokens | None = None
    hooks: Hooks | None = None  # who may announce signals by webhooks
    sns: Sns | None = None  # which topics of Amazon SNS may
    endpoints: Endpoints | None = None  # the file that both are from, if it is to be looked at again
    wait_ms: int = 5_000  # how long a write waits for its own effect, unless it says otherwise
    wait_ms_max: int = 30_000
    body_bytes_max: int = BODY_BYTES_MAX
    claim_ms: int = 5_000  # how long a poll waits for the engine to grant a task
    connections_max: int | None = None  # as many as the limit of open files leaves, unless given
    idle_ms: int = 5_000  # how long a connection may stay open between two requests
    head_ms: int = 10_000  # how long the head of a request may take, from when the connection was ready for it
    body_ms: int = 30_000  # how long a body may take to come
    unread_ms: int = 30_000  # how long an answer may wait to be read
    cancelled_ms: int = 15 * 60 * 1000  # how long a worker is told of a task that is no longer wanted
