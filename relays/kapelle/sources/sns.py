"""Amazon SNS over HTTP: confirms subscriptions, and makes notifications into signals under the ids that SNS gave them.

Every message is signed, with a certificate whose address the message tells. So the address must be one of Amazon's, and
the topic one that we were told of, before anything is fetched. A notification is read as the document

    {"message": the message, as JSON if it is, "subject": …, "topic": …, "time": …, "attributes": {name: value}}
"""

import base64
import binascii
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kapelle.processors.intake.forms import NotASignal
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.sources.errors import NotFetched, NotSigned
from kapelle.sources.mapping import announced
from kapelle.sources.models import SnsRule
from kapelle.sources.paths import Path

CONFIRM: Final = "SubscriptionConfirmation"
NOTIFY: Final = "Notification"
# What is signed of each type of message, in this order.
SIGNED: Final = {
    NOTIFY: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRM: ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    "UnsubscribeConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
HASHES: Final[Mapping[str, hashes.HashAlgorithm]] = {
    "1": hashes.SHA1(),  # noqa: S303 - it is what the first version of these signatures is
    "2": hashes.SHA256(),
}
FETCH_S: Final = 5.0
FETCHED_BYTES_MAX: Final = 64 * 1024
CERTIFICATES_MAX: Final = 100
TEXTS: Final = ("Type", "MessageId", "TopicArn", "Message", "Timestamp", "Signature", "SigningCertURL")

_HOST: Final = re.compile(r"sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?", re.ASCII)

Envelope = dict[str, Any]  # JSON of Amazon
Fetch = Callable[[str], Awaitable[bytes]]


async def fetched(url: str) -> bytes:
    """What stands at an address. Raises `NotFetched`."""
    try:
        async with (
            httpx.AsyncClient(timeout=FETCH_S, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer,
        ):
            answer.raise_for_status()
            content = b""
            async for chunk in answer.aiter_raw():  # decoded, a few bytes could be gigabytes
                content += chunk
                if len(content) > FETCHED_BYTES_MAX:
                    raise NotFetched(f"Expected at most {FETCHED_BYTES_MAX:,} bytes from SNS, but found more")
            return content
    except httpx.HTTPError as error:
        raise NotFetched(f"Expected an answer from SNS, but {type(error).__name__}: {error}") from None


def is_of_sns(url: object, suffix: str = "") -> bool:
    """Whether an address is one of SNS, over TLS, and nothing that only looks like one."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = parts.scheme == "https" and port in {None, 443} and "@" not in parts.netloc and "\\" not in url
    return plain and bool(_HOST.fullmatch(parts.hostname or "")) and parts.path.endswith(suffix)


class Sns:
    """All endpoints of SNS, by name."""

    def __init__(self, rules: Mapping[str, SnsRule], fetch: Fetch = fetched) -> None:
        self._fetch = fetch
        self._certificates: dict[str, x509.Certificate] = {}
        self._rules: dict[str, SnsRule] = {}
        self.use(rules)

    def use(self, rules: Mapping[str, SnsRule]) -> None:
        """Follow these rules from now on. A request sees the ones or the others."""
        # A repetition that is older than what the engine remembers is refused by its time.
        timed = {"time": Path.parse("/time")}
        self._rules = {n: rule if rule.time else rule.model_copy(update=timed) for n, rule in rules.items()}

    def knows(self, name: str) -> bool:
        return name in self._rules

    async def received(self, name: str, body: bytes) -> Envelope:
        """The message that a body holds. Raises `NotSigned` for all that is not of a topic that may write here."""
        envelope = _envelope(body)
        if envelope["TopicArn"] not in self._rules[name].topics or not is_of_sns(envelope["SigningCertURL"], ".pem"):
            raise NotSigned
        certificate = await self._certificate(envelope["SigningCertURL"])
        key, chosen = certificate.public_key(), HASHES.get(str(envelope.get("SignatureVersion")))
        if chosen is None or not isinstance(key, rsa.RSAPublicKey) or not _is_valid_now(certificate):
            raise NotSigned
        try:
            given = base64.b64decode(envelope["Signature"], validate=True)
            key.verify(given, _signed_text(envelope), padding.PKCS1v15(), chosen)
        except (InvalidSignature, binascii.Error, ValueError):
            raise NotSigned from None
        return envelope

    async def confirm(self, envelope: Envelope) -> None:
        """Confirm a subscription. Raises `NotSigned` if the address for that is none of SNS's, and `NotFetched`."""
        if not is_of_sns(envelope.get("SubscribeURL")):
            raise NotSigned
        await self._fetch(envelope["SubscribeURL"])

    def signal(self, name: str, envelope: Envelope) -> AnnounceSignal | None:
        """The signal of a notification; None if the filter keeps it out. Raises `NotASignal`."""
        topic = envelope["TopicArn"]
        document = {
            "message": _message(envelope["Message"]),
            "subject": envelope.get("Subject"),
            "topic": topic,
            "time": envelope["Timestamp"],
            "attributes": _attributes(envelope.get("MessageAttributes")),
        }
        source = {"sns": name, "topic": topic}
        return announced(self._rules[name], document, given_id=envelope["MessageId"], source=source)

    async def _certificate(self, url: str) -> x509.Certificate:
        """A certificate, fetched once: SNS gives each one an address of its own."""
        certificate = self._certificates.get(url)
        if certificate is None:
            try:
                certificate = x509.load_pem_x509_certificate(await self._fetch(url))
            except ValueError:
                raise NotFetched("Expected a certificate from SNS, but the answer is not a certificate") from None
            if len(self._certificates) >= CERTIFICATES_MAX:
                self._certificates.pop(next(iter(self._certificates)))
            self._certificates[url] = certificate
        return certificate


def _envelope(body: bytes) -> Envelope:
    try:
        envelope = msgspec.json.decode(body, type=Envelope)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise NotSigned from None
    if not all(isinstance(envelope.get(name), str) for name in TEXTS) or envelope["Type"] not in SIGNED:
        raise NotSigned
    return envelope


def _signed_text(envelope: Envelope) -> bytes:
    """What is signed: names and values of what is there, each on a line."""
    pairs = [(name, envelope[name]) for name in SIGNED[envelope["Type"]] if envelope.get(name) is not None]
    return "".join(f"{name}\n{value}\n" for name, value in pairs).encode()


def _is_valid_now(certificate: x509.Certificate) -> bool:
    now = datetime.fromtimestamp(time.time(), UTC)
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _message(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return text


def _attributes(given: object) -> dict[str, object]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(attribute, dict) for attribute in given.values()):
        raise NotASignal("Expected the attributes of a message as an object")
    return {name: attribute.get("Value") for name, attribute in given.items()}
