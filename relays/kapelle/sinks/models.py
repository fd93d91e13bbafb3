"""The form of a file of sinks. It is checked as a whole, so that all errors are reported at once.

sinks:
  ops:
    topics: [public.instances.changes]
    filter: {/status: [FAILED, TIMED_OUT]}
    webhook: {url: https://ops.example.com/kapelle}
  audit:
    topics: [public.workflows.changes, public.instances.changes]
    sns: {topic: "arn:aws:sns:eu-central-1:123456789012:audit.fifo"}
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError, model_validator

from kapelle.processors.definitions.problems import DefinitionRefused
from kapelle.processors.definitions.yaml_text import read_yaml
from kapelle.processors.publisher.streams import KEYS
from kapelle.processors.streams import Stream
from kapelle.relay.addresses import origin_of
from kapelle.sinks.errors import BadSinks
from kapelle.sources.hooks import SIGNATURES_MAX, secrets_in
from kapelle.sources.models import ARN, SECRET_CHARS_MIN, Filtered, Model, problems_of

SECRETS_VARIABLE: Final = "KAPELLE_SINK_SECRETS"
SINKS_MAX: Final = 100
NAME: Final = r"^[A-Za-z0-9_-]{1,100}$"
LANES_MAX: Final = 64
TIMEOUT_MS_MAX: Final = 120_000
PUBLIC: Final[Mapping[str, Stream]] = {stream.name: stream for stream in KEYS}


def _topic(name: str) -> str:
    if name not in PUBLIC:
        raise ValueError(f"Expected a public topic among {', '.join(PUBLIC)}, but found {name[:100]!r}")
    return name


def _url(url: str) -> str:
    """An address over HTTP. One with a password in it would be written to logs."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
        known = known and (parts.port is None or parts.port > 0) and url.isascii() and url.isprintable()
    except ValueError:
        known = False
    if not known:
        raise ValueError(
            f"Expected http://host/… or https://host/…, without user and password, but found {origin_of(url)!r}"
        )
    return url


class Mode(StrEnum):
    """How a CloudEvent goes into a request: as one JSON object, or with its attributes in headers."""

    STRUCTURED = "structured"
    BINARY = "binary"


class Begin(StrEnum):
    """Where a sink begins that has not read before."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Retry(Model):
    """How often and how soon an event is offered again: waits are drawn from a range that doubles up to the longest."""

    attempts: Annotated[int, Field(ge=1, le=1_000)] = 10
    first_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 500
    longest_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 60_000
    patience_s: Annotated[int, Field(ge=1)] | None = None


TimeoutMs = Annotated[int, Field(ge=1, le=TIMEOUT_MS_MAX)]
Url = Annotated[str, AfterValidator(_url)]
Secret = Annotated[str, Field(min_length=SECRET_CHARS_MIN)]


class WebhookRule(Model):
    """Where requests go. Every secret signs them, so that one can take the place of another."""

    url: Url
    mode: Mode = Mode.STRUCTURED
    timeout_ms: TimeoutMs = 10_000
    secrets: list[Secret] = Field(default=[], max_length=SIGNATURES_MAX, repr=False)


class SnsRule(Model):
    """The topic of SNS that events are published to. Credentials are found as Amazon's tools find them."""

    topic: Annotated[str, Field(pattern=ARN)]
    endpoint: Url | None = None
    timeout_ms: TimeoutMs = 10_000


class Sink(Filtered):
    """What is delivered, and whereto."""

    topics: Annotated[list[Annotated[str, AfterValidator(_topic)]], Field(min_length=1)]
    begin: Begin = Begin.EARLIEST
    lanes: Annotated[int, Field(ge=1, le=LANES_MAX)] = 8
    retry: Retry = Retry()
    webhook: WebhookRule | None = None
    sns: SnsRule | None = None

    @model_validator(mode="after")
    def _goes_somewhere(self) -> "Sink":
        if (self.webhook is None) == (self.sns is None):
            raise ValueError("Expected either webhook or sns, but found " + ("neither" if self.sns is None else "both"))
        return self


class SinksFile(Model):
    """All sinks of one process."""

    sinks: Annotated[dict[Annotated[str, Field(pattern=NAME)], Sink], Field(min_length=1, max_length=SINKS_MAX)]


def read_sinks(text: str | bytes, environment: Mapping[str, str] = os.environ) -> dict[str, Sink]:
    """The sinks that a YAML or JSON text tells of, with the secrets of the environment. Raises `BadSinks`."""
    try:
        sinks_read = SinksFile.model_validate(read_yaml(text)).sinks
    except DefinitionRefused as error:
        raise BadSinks([str(problem) for problem in error.problems]) from None
    except ValidationError as error:
        raise BadSinks(problems_of(error)) from None
    secrets, problems = secrets_in(SECRETS_VARIABLE, environment)
    sinks = {name: _with_secrets(sink, secrets.get(name, [])) for name, sink in sinks_read.items()}
    problems += [
        f"sinks.{name}.webhook: Expected a secret here or in {SECRETS_VARIABLE}, but found none"
        for name, sink in sinks.items()
        if sink.webhook is not None and not sink.webhook.secrets
    ]
    if problems:
        raise BadSinks(problems)
    return sinks


def _with_secrets(sink: Sink, more: list[str]) -> Sink:
    if sink.webhook is None:
        return sink
    webhook = sink.webhook.model_copy(update={"secrets": (sink.webhook.secrets + more)[:SIGNATURES_MAX]})
    return sink.model_copy(update={"webhook": webhook})
