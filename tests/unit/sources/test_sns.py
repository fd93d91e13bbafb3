"""Messages of Amazon SNS are believed when Amazon signed them for a topic of ours, and nobody else is fetched from."""

import base64
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from kapelle.api import ApiSettings, Role, Tokens
from kapelle.processors.wiring import SIGNAL_EVENTS
from kapelle.schemas.contracts import SignalAccepted, SignalDuplicated
from kapelle.sources import BadSources, read_sources
from kapelle.sources.sns import HASHES, Sns, fetched, is_of_sns
from tests.integration.api.places import Place, embedded_place, until
from tests.unit.sources.test_docs import block

HOST = "https://sns.eu-central-1.amazonaws.com"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:shop"
EXPIRED, VALID, OTHERS = "/expired.pem", "/valid.pem", "/others.pem"
KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHERS_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def certificate(key: rsa.RSAPrivateKey, days: int) -> bytes:
    """A certificate that is good until so many days from now."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


class Amazon:
    """A server that stands in for SNS: what it has by path, and what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pages = {VALID: certificate(KEY, 30), EXPIRED: certificate(KEY, -1), OTHERS: certificate(OTHERS_KEY, 30)}
        self.pages |= {"/": b"<confirmed/>", "/junk.pem": b"junk"}
        amazon = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                amazon.asked.append(self.path)
                page = amazon.pages.get(urlsplit(self.path).path)
                self.send_response(200 if page else 404)
                self.end_headers()
                self.wfile.write(page or b"")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own word
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    async def fetch(self, url: str) -> bytes:
        """As the product fetches, but from here."""
        assert url.startswith(f"{HOST}/")
        return await fetched(url.replace(HOST, f"http://127.0.0.1:{self.server.server_port}"))


@pytest.fixture(scope="module")
def amazon() -> Iterator[Amazon]:
    made = Amazon()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def api(amazon: Amazon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An API that asks everyone but SNS for a token, with the endpoint of the page."""
    directory: Path = tmp_path_factory.mktemp("sns")
    rules = read_sources(block("yaml", 2)).sns
    settings = ApiSettings(tokens=Tokens([(Role.ADMIN, "a-token-of-ours")]), sns=Sns(rules, amazon.fetch))
    with embedded_place(directory, settings) as place:
        yield place


def canonical(said: dict[str, Any]) -> bytes:
    """What Amazon's manual says is signed."""
    subject = f"Subject\n{said['Subject']}\n" if said["Subject"] else ""
    start = f"Message\n{said['Message']}\nMessageId\n{said['MessageId']}\n"
    end = f"TopicArn\n{said['TopicArn']}\nType\n{said['Type']}\n"
    if said["Type"] == "Notification":
        return f"{start}{subject}Timestamp\n{said['Timestamp']}\n{end}".encode()
    subscribe = f"SubscribeURL\n{said['SubscribeURL']}\n"
    return f"{start}{subscribe}Timestamp\n{said['Timestamp']}\nToken\n{said['Token']}\n{end}".encode()


def message(kind: str = "Notification", *, version: str = "2", key: rsa.RSAPrivateKey = KEY, **more: Any) -> bytes:
    """A message as SNS writes it."""
    said = {
        "Type": kind,
        "MessageId": "m-1",
        "TopicArn": TOPIC,
        "Subject": None,
        "Message": '{"order": 4711, "type": "placed"}',
        "Timestamp": datetime.now(UTC).isoformat(),
        "SignatureVersion": version,
        "SigningCertURL": f"{HOST}{VALID}",
        **more,
    }
    if kind != "Notification":
        said = {"Token": "t-1", "SubscribeURL": f"{HOST}/?Action=ConfirmSubscription&Token=t-1"} | said
    chosen = HASHES.get(version, hashes.SHA256())
    signed = key.sign(canonical(said), padding.PKCS1v15(), chosen)
    return json.dumps({"Signature": base64.b64encode(signed).decode()} | said).encode()


def post(api: Place, body: bytes, name: str = "shop") -> httpx.Response:
    return api.http.post(f"/sns/{name}", content=body, headers={"Content-Type": "text/plain; charset=UTF-8"})


def events(api: Place, kind: type[Any], signal_id: str) -> list[Any]:
    """What the engine has said of a signal."""
    follower = api.journal.follow([SIGNAL_EVENTS], {})
    found: list[Any] = []
    while taken := follower.take(1_000, 0.2):
        found += [entry.value for entry in taken]
    follower.close()
    return [event for event in found if isinstance(event, kind) and event.signal_id == signal_id]


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_notification_becomes_one_signal_however_often_it_comes(api: Place, version: str) -> None:
    body = message(version=version, MessageId=f"m-{version}", Subject="An order")

    answers = [post(api, body) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 202], answers[0].text
    assert answers[0].json() == {"status": "ANNOUNCED", "name": "order-placed", "id": f"m-{version}"}
    until(lambda: events(api, SignalDuplicated, f"m-{version}"), "the repetition to be known")
    (accepted,) = events(api, SignalAccepted, f"m-{version}")
    assert json.loads(accepted.params) == {"order": 4711}
    assert json.loads(accepted.source) == {"sns": "shop", "topic": TOPIC}


def test_a_subscription_is_confirmed(api: Place, amazon: Amazon) -> None:
    answer = post(api, message("SubscriptionConfirmation"))

    assert (answer.status_code, answer.json()) == (202, {"status": "CONFIRMED"})
    assert "/?Action=ConfirmSubscription&Token=t-1" in amazon.asked


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"Type": "SomethingElse"}',
        message(key=OTHERS_KEY),
        message(SigningCertURL=f"{HOST}{OTHERS}"),
        message(SigningCertURL=f"{HOST}{EXPIRED}"),
        message(SigningCertURL="https://sns.evil.com/valid.pem"),
        message(SigningCertURL=f"{HOST}.evil.com{VALID}"),
        message(SigningCertURL=f"{HOST}/valid.txt"),
        message(TopicArn=TOPIC + "s"),
        message(version="3"),
        message(Signature="no base 64!"),
        message(Signature=""),
        message("SubscriptionConfirmation", SubscribeURL="https://evil.com/"),
        message("SubscriptionConfirmation", SubscribeURL="http://169.254.169.254/"),
    ],
)
def test_what_amazon_did_not_sign_for_us_has_one_answer(api: Place, amazon: Amazon, body: bytes) -> None:
    amazon.asked.clear()

    answer = post(api, body)

    assert answer.status_code == 401
    assert answer.json()["detail"] == "Expected a message that SNS signed for a topic of this endpoint"
    assert [path for path in amazon.asked if not path.endswith(".pem")] == []


def test_a_changed_message_is_not_believed(api: Place) -> None:
    said = json.loads(message())

    changed = [json.dumps(said | {name: "another"}).encode() for name in ("Message", "MessageId", "Timestamp")]

    assert {post(api, body).status_code for body in changed} == {401}


def test_others_than_our_topics_make_us_fetch_nothing(api: Place, amazon: Amazon) -> None:
    amazon.asked.clear()

    post(api, message(TopicArn=TOPIC + "s", SigningCertURL=f"{HOST}/never.pem"))

    assert amazon.asked == []


@pytest.mark.parametrize("path", ["/lost.pem", "/junk.pem"])
def test_a_certificate_that_cannot_be_had_is_asked_for_again_later(api: Place, path: str) -> None:
    assert post(api, message(SigningCertURL=f"{HOST}{path}")).status_code == 503


def test_a_message_that_makes_no_signal_is_told_why(api: Place) -> None:
    answer = post(api, message(Message='{"type": "placed"}'))

    assert answer.status_code == 400
    assert answer.json()["detail"] == "Expected parameter 'order' at /message/order, but found nothing there"


def test_filters_see_messages_and_the_rest_is_passed_over(api: Place) -> None:
    answers = [post(api, message(Message="plain words")), post(api, message("UnsubscribeConfirmation"))]

    assert [answer.json() for answer in answers] == [{"status": "FILTERED"}] * 2
    assert post(api, message(), "nobody").status_code == 404


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{HOST}/x.pem", True),
        ("https://sns.cn-north-1.amazonaws.com.cn/x.pem", True),
        (f"{HOST}:443/x.pem", True),
        ("http://sns.eu-central-1.amazonaws.com/x.pem", False),
        (f"{HOST}:8443/x.pem", False),
        ("https://ann@sns.eu-central-1.amazonaws.com/x.pem", False),
        ("https://evil.com\\@sns.eu-central-1.amazonaws.com/x.pem", False),
        ("https://sns.eu-central-1.amazonaws.com.evil.com/x.pem", False),
        ("https://evil.com/sns.eu-central-1.amazonaws.com/x.pem", False),
        ("https://sns.eu-central-1.amazonaws.com:x/x.pem", False),
        ("https://[/x.pem", False),
        (None, False),
        (7, False),
    ],
)
def test_only_addresses_of_sns_are_fetched(url: object, expected: bool) -> None:
    assert is_of_sns(url, ".pem") is expected


@pytest.mark.parametrize("said", ["{}", "{topics: []}", "{topics: [shop]}"])
def test_an_endpoint_without_topics_is_refused(said: str) -> None:
    with pytest.raises(BadSources, match=r"sns\.shop\.topics"):
        read_sources(f"sns: {{shop: {said}}}")
