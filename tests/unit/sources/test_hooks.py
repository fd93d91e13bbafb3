"""Webhooks announce signals for those who know a secret, and tell others nothing."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGHUP
from typing import Any

import httpx
import pytest

from kapelle.api import ApiSettings, Role, Tokens
from kapelle.cli.api_server import api_settings, reloading
from kapelle.cli.errors import BadFile
from kapelle.processors.wiring import SIGNAL_EVENTS
from kapelle.schemas.contracts import SignalAccepted, SignalDuplicated
from kapelle.sources import BadSources, read_sources
from kapelle.sources.endpoints import Endpoints
from kapelle.sources.hooks import TOLERANCE_S, Delivery, Hook, Hooks, signature
from tests.integration.api.places import Place, embedded_place, until
from tests.unit.sources.test_docs import block

SECRET, OTHER = "a secret of the shop", "the one that came before"
NOW_S = 1_794_823_200
BODY = b'{"id": 7, "type": "placed"}'
FILE = f"""
hooks:
  shop:
    secrets: ["{SECRET}", "{OTHER}"]
    name: order-placed
    params: {{order: /id}}
    filter: {{/type: placed}}
  plain: {{secrets: ["{SECRET}"], payload: ""}}
"""


def hook(name: str = "shop") -> Hook:
    found = Hooks.of(read_sources(FILE), {}).get(name)
    assert found is not None
    return found


@pytest.mark.parametrize("secret", [SECRET, OTHER])
@pytest.mark.parametrize("delivery", [None, "d-1"])
def test_who_knows_a_secret_is_accepted(secret: str, delivery: str | None) -> None:
    sent = Delivery(BODY, signature(secret, BODY, NOW_S, delivery), delivery)

    assert hook().accepts(sent, NOW_S + TOLERANCE_S)


GOOD = signature(SECRET, BODY, NOW_S)
DELIVERED = signature(SECRET, BODY, NOW_S, "d-1")


@pytest.mark.parametrize(
    ("sent", "now_s"),
    [
        (Delivery(BODY, ""), NOW_S),
        (Delivery(BODY, "t=,v1="), NOW_S),
        (Delivery(BODY, f"t={NOW_S}"), NOW_S),
        (Delivery(BODY, GOOD.replace("v1=", "v0=")), NOW_S),
        (Delivery(BODY, f"{GOOD},t={NOW_S + 1}"), NOW_S),
        (Delivery(BODY, GOOD.replace(str(NOW_S), str(NOW_S + 1))), NOW_S),
        (Delivery(BODY, signature("another secret of somebody", BODY, NOW_S)), NOW_S),
        (Delivery(BODY + b" ", GOOD), NOW_S),
        (Delivery(BODY, GOOD), NOW_S + TOLERANCE_S + 1),
        (Delivery(BODY, GOOD), NOW_S - TOLERANCE_S - 1),
        (Delivery(BODY, GOOD, "d-1"), NOW_S),
        (Delivery(BODY, DELIVERED), NOW_S),
        (Delivery(BODY, DELIVERED, "d-2"), NOW_S),
        (Delivery(b"d-1." + BODY, DELIVERED + "x"), NOW_S),
        (Delivery(BODY, signature(SECRET, BODY, NOW_S, "d.1"), "d.1"), NOW_S),
        (Delivery(BODY, "t=٣,v1=é"), NOW_S),
        (Delivery(BODY, f"t={NOW_S}," + ",".join(["v1=00"] * 11)), NOW_S),
    ],
)
def test_everybody_else_is_not(sent: Delivery, now_s: float) -> None:
    assert not hook().accepts(sent, now_s)


def test_a_delivery_can_not_be_taken_for_a_body() -> None:
    """It is signed as it stands, but it is no object: nothing comes of it."""
    sent = Delivery(b"d-1." + BODY, DELIVERED)

    with pytest.raises(Exception, match="Expected a JSON object"):
        hook().signal(sent)


def test_the_id_is_the_delivery_or_follows_from_time_and_body() -> None:
    ids = [
        (signal.signal_id if (signal := hook().signal(sent)) else "")
        for sent in (
            Delivery(BODY, DELIVERED, "d-1"),
            Delivery(BODY, GOOD),
            Delivery(BODY, GOOD + ",v1=00"),
            Delivery(BODY, signature(SECRET, BODY, NOW_S + 1)),
        )
    ]

    assert ids[0] == "shop/d-1"
    assert ids[1] == ids[2] != ids[3]


def test_two_hooks_that_announce_under_one_name_may_count_their_deliveries_alike() -> None:
    rule = read_sources("hooks: {any: {name: order-placed}}").hooks["any"]
    signals = [Hook(name, [SECRET], rule).signal(Delivery(BODY, DELIVERED, "d-1")) for name in ("shop", "other")]

    assert [signal and (signal.name, signal.signal_id) for signal in signals] == [
        ("order-placed", "shop/d-1"),
        ("order-placed", "other/d-1"),
    ]


def test_secrets_come_from_the_environment_too() -> None:
    hooks = Hooks.of(read_sources("hooks: {shop: {}}"), {"KAPELLE_HOOK_SECRETS": f"shop:{SECRET}, other:{OTHER}"})
    sent = [Delivery(BODY, signature(secret, BODY, NOW_S)) for secret in (SECRET, OTHER)]

    found = [hooks.get("shop"), hooks.get("other")]

    assert [one.accepts(given, NOW_S) for one in found if one for given in sent] == [True, False, False, True]
    assert SECRET not in repr(hooks)


@pytest.mark.parametrize(
    ("text", "secrets", "problem"),
    [
        ("hooks: {shop: {}}", "", "hooks.shop: Expected a secret here or in KAPELLE_HOOK_SECRETS"),
        ("hooks: {shop: {secrets: [short]}}", "", "at least 16 characters"),
        ("hooks: {'a/b': {secrets: [aaaaaaaaaaaaaaaaaaaa]}}", "", "hooks.a/b"),
        ("hooks: {shop: 7}", "", "hooks.shop"),
        ("hooks: 7", "", "hooks"),
        ("{}", "shop", "part 1 is different"),
        ("{}", f"a:{SECRET},shop:short", "part 2 is different"),
    ],
)
def test_hooks_that_cannot_be_used_are_refused(text: str, secrets: str, problem: str) -> None:
    with pytest.raises(BadSources) as caught:
        Hooks.of(read_sources(text), {"KAPELLE_HOOK_SECRETS": secrets})

    assert problem in str(caught.value)
    assert "short" not in str(caught.value)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An API that asks everyone but senders of hooks for a token."""
    directory: Path = tmp_path_factory.mktemp("hooks")
    settings = ApiSettings(tokens=Tokens([(Role.ADMIN, "a-token-of-ours")]), hooks=Hooks.of(read_sources(FILE), {}))
    with embedded_place(directory, settings) as place:
        yield place


def post(api: Place, name: str, body: bytes, **headers: str) -> httpx.Response:
    named = {f"Kapelle-{key.capitalize()}": value for key, value in headers.items()}
    return api.http.post(f"/hooks/{name}", content=body, headers=named)


def events(api: Place) -> list[Any]:
    follower = api.journal.follow([SIGNAL_EVENTS], {})
    found: list[Any] = []
    while taken := follower.take(1_000, 0.2):
        found += [entry.value for entry in taken]
    follower.close()
    return found


def test_a_signed_body_becomes_one_signal_however_often_it_is_sent(api: Place) -> None:
    at_s = int(time.time())
    headers = {"signature": signature(SECRET, BODY, at_s, "d-1"), "delivery": "d-1"}

    answers = [post(api, "shop", BODY, **headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == {"status": "ANNOUNCED", "name": "order-placed", "id": "shop/d-1"}
    until(lambda: any(isinstance(one, SignalDuplicated) for one in events(api)), "the repetition to be known")
    (accepted,) = [one for one in events(api) if isinstance(one, SignalAccepted) and one.name == "order-placed"]
    assert (json.loads(accepted.params), json.loads(accepted.source)) == ({"order": 7}, {"hook": "shop"})


def test_what_the_filter_keeps_out_is_answered_so(api: Place) -> None:
    body = b'{"type": "moved"}'

    answer = post(api, "shop", body, signature=signature(SECRET, body, int(time.time())))

    assert (answer.status_code, answer.json()) == (202, {"status": "FILTERED"})


def test_all_that_is_wrong_with_a_signature_has_one_answer(api: Place) -> None:
    now_s = int(time.time())
    wrong = ["", "nonsense", signature(OTHER + "!", BODY, now_s), signature(SECRET, BODY, now_s - 2 * TOLERANCE_S)]

    answers = [post(api, "shop", BODY, signature=one) for one in wrong]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert post(api, "nobody", BODY).status_code == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"no json", b'{"type": "placed"}', b"\xff"])
def test_a_body_that_makes_no_signal_is_told_why(api: Place, body: bytes) -> None:
    answer = post(api, "shop", body, signature=signature(SECRET, body, int(time.time())))

    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("Expected")


def test_a_body_that_is_too_large_is_refused(api: Place) -> None:
    body = b'{"x": "' + b"x" * 1_100_000 + b'"}'

    assert post(api, "plain", body, signature=signature(SECRET, body, int(time.time()))).status_code == 413


def test_only_hooks_are_open_to_those_without_a_token(api: Place) -> None:
    paths = ["/hooks", "/workflows", "/hooks/../workflows", "/hooks/shop/more"]

    assert [api.http.get(path).status_code for path in paths] == [401, 401, 401, 404]


def test_what_the_page_says_to_type_announces_a_signal(api: Place, tmp_path: Path) -> None:
    hooks = Hooks.of(read_sources(block("yaml", 1)), {"KAPELLE_HOOK_SECRETS": f"shop:{SECRET}"})
    with embedded_place(tmp_path, ApiSettings(hooks=hooks)) as place:
        environment = os.environ | {"SECRET": SECRET, "URL": place.url}
        done = subprocess.run(
            ["sh", "-euc", block("sh")], env=environment, capture_output=True, text=True, check=True, timeout=60
        )

    answer = json.loads(done.stdout)
    assert (answer["status"], answer["name"]) == ("ANNOUNCED", "order-placed")


def test_hooks_follow_their_file_and_one_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "hooks.yaml"
    file.write_text(f"hooks: {{shop: {{secrets: [{SECRET}]}}}}")
    settings = api_settings(None, file)
    assert settings.endpoints is not None
    with embedded_place(tmp_path, settings) as place:

        def sent(name: str) -> int:
            return post(place, name, BODY, signature=signature(SECRET, BODY, int(time.time()))).status_code

        def followed(text: str) -> tuple[int, int]:
            file.write_text(text)
            os.kill(os.getpid(), SIGHUP)
            look()
            return sent("shop"), sent("other")

        with reloading(settings) as look:
            answers = [
                (sent("shop"), sent("other")),
                followed(f"hooks: {{other: {{secrets: [{SECRET}]}}, shop: {{secrets: [{OTHER}]}}}}"),
                followed("hooks: {nobody: {}}"),
                followed("hooks: 7"),
                followed("{}"),
            ]

    assert answers == [(202, 404), (401, 202), (401, 202), (401, 202), (404, 404)]


def test_endpoints_of_sns_follow_the_file_too(tmp_path: Path) -> None:
    file = tmp_path / "hooks.yaml"
    file.write_text("{}")
    endpoints = Endpoints(file)
    file.write_text(block("yaml", 2))
    endpoints.ask()

    before = endpoints.sns.knows("shop")
    endpoints.look()

    assert (before, endpoints.sns.knows("shop")) == (False, True)


def test_commands_that_serve_take_hooks_from_a_file_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "hooks.yaml", tmp_path / "bad.yaml"
    good.write_text(block("yaml", 1) + block("yaml", 2))
    bad.write_text("hooks: {nobody: {}}")
    monkeypatch.setenv("KAPELLE_HOOK_SECRETS", f"shop:{SECRET}")

    settings = api_settings(None, good)

    assert settings.hooks is not None
    assert settings.sns is not None
    assert (settings.hooks.get("shop") is not None, settings.sns.knows("shop")) == (True, True)
    with pytest.raises(BadFile, match=r"hooks\.nobody: Expected a secret"):
        api_settings(None, bad)
