"""Webhooks: each event is one signed request.

    POST /kapelle
    Idempotency-Key: publisher.instances/kapelle.workflows.events-3-17#1
    Kapelle-Delivery: <the same, as letters and digits>
    Kapelle-Signature: t=1794823200,v1=<hex of HMAC-SHA256>

The signature is the one that our own hooks check (`kapelle.sources.hooks`), over time, delivery and body. A host's
address is looked up and checked each time, the connection goes to that address, and redirects are not followed.
"""

import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import httpx

from kapelle.sinks.errors import NotDelivered, Undeliverable
from kapelle.sinks.events import JSON, STRUCTURED, CloudEvent
from kapelle.sinks.models import Mode, WebhookRule
from kapelle.sources.hooks import signatures
from kapelle.worker.addresses import addresses_of, checked_address
from kapelle.worker.errors import NonRetryable, PlatformFailure

SHOWN_CHARS_MAX: Final = 300
BODY_BYTES_MAX: Final = 64 * 1024  # of an answer: so much is read, to use the connection again
AGENT: Final = "kapelle-sinks"
# These say that it is not the event's fault.
AWAY: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class Webhook:
    """Sends events to one address."""

    def __init__(self, rule: WebhookRule) -> None:
        self._rule = rule
        self._url = httpx.URL(rule.url)
        self._timeout_s = rule.timeout_ms / 1000
        # Proxies and credentials of our own environment are not for receivers.
        self._client = httpx.Client(timeout=self._timeout_s, trust_env=False, follow_redirects=False)

    def send(self, event: CloudEvent) -> None:
        until = time.monotonic() + self._timeout_s
        try:
            answer = self._client.send(self._request(event), stream=True)
            try:
                shown = _read(answer, until)
            finally:
                answer.close()
        except (httpx.HTTPError, OSError, NonRetryable, PlatformFailure) as error:
            # An address that is forbidden is the operator's to mend, and no fault of the event.
            reason = f"Expected {self._url.host} to answer, but {type(error).__name__}: {error}"
            raise NotDelivered(reason, is_away=True) from error
        _judge(answer, shown)

    def close(self) -> None:
        self._client.close()

    def _request(self, event: CloudEvent) -> httpx.Request:
        """A request to the address that was checked, under the name that was asked for."""
        is_structured = self._rule.mode is Mode.STRUCTURED
        body = event.structured() if is_structured else event.body()
        delivery, at_s = event.digest, int(time.time())
        headers = {
            "Host": self._url.netloc.decode(),
            "User-Agent": AGENT,
            "Accept-Encoding": "identity",
            "Content-Type": STRUCTURED if is_structured else JSON,
            "Idempotency-Key": event.id,
            "Kapelle-Delivery": delivery,
            "Kapelle-Signature": signatures(self._rule.secrets, body, at_s, delivery),
        }
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        address = checked_address(self._url.host, addresses_of(self._url.host, port))
        return httpx.Request(
            "POST",
            self._url.copy_with(host=address),
            headers=headers if is_structured else headers | event.headers(),
            content=body,
            extensions={"sni_hostname": self._url.host, "timeout": httpx.Timeout(self._timeout_s).as_dict()},
        )


def _read(answer: httpx.Response, until_s: float) -> str:
    """The beginning of an answer's body. The rest is read only so that the connection can be used again.

    It is taken as it was sent: a few bytes could decode to gigabytes.
    """
    body = b""
    for chunk in answer.iter_raw():
        body += chunk
        if len(body) > BODY_BYTES_MAX or time.monotonic() > until_s:
            break
    return body.decode(errors="replace")[:SHOWN_CHARS_MAX]


def _judge(answer: httpx.Response, shown: str) -> None:
    """What an answer means. Nothing, if the event was taken."""
    status = answer.status_code
    if 200 <= status < 300:
        return
    reason = f"Expected an answer of 2xx, but found {status}" + (f": {shown}" if shown else "")
    if status in AWAY or status >= 500:
        after_s = retry_after_s(answer.headers.get("retry-after", ""), time.time())
        raise NotDelivered(reason, is_away=status in AWAY, retry_after_s=after_s)
    raise Undeliverable(reason)


def retry_after_s(header: str, now_s: float) -> float:
    """How long a receiver asks to be left alone, in seconds or until a date; 0 if it does not say."""
    text = header.strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return 0.0
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(aware.timestamp() - now_s, 0.0)
