"""Webhooks: bodies that are signed with a secret become signals.

    Kapelle-Signature: t=1794823200,v1=<hex of HMAC-SHA256>

What is signed is the time in seconds, a dot, and the body; with the header `Kapelle-Delivery` it is the time, a dot,
the delivery, a dot, and the body. The two can't be taken for each other: a body is a JSON object, so it begins with no
character that a delivery may have. A delivery that is sent again is the same signal, and one that somebody has
overheard is of no use: as it is it announces nothing new, and otherwise it is not signed.
"""

import hmac
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from kapelle.processors.intake.forms import NotASignal
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.sources.errors import BadSources
from kapelle.sources.mapping import announced
from kapelle.sources.models import HOOK, SECRET_CHARS_MIN, HookRule, Rule, SourcesFile

SECRETS_VARIABLE: Final = "KAPELLE_HOOK_SECRETS"
TOLERANCE_S: Final = 300
SIGNATURES_MAX: Final = 10

_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_DELIVERY: Final = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


class Delivery(msgspec.Struct, frozen=True):
    """What was sent to a hook."""

    body: bytes
    signature: str  # the header, as it came
    delivery: str | None = None


def signature(secret: str, body: bytes, at_s: int, delivery: str | None = None) -> str:
    """The header that signs a body, for those who send."""
    return signatures([secret], body, at_s, delivery)


def signatures(secrets: Iterable[str], body: bytes, at_s: int, delivery: str | None = None) -> str:
    """The same with each of several secrets, of which whoever receives it may know only one."""
    given = [f"v1={_digest(secret.encode(), body, str(at_s), delivery)}" for secret in secrets]
    return ",".join([f"t={at_s}", *given])


class Hook:
    """One hook: its secrets, which are never shown, and its rule."""

    def __init__(self, name: str, secrets: list[str], rule: Rule) -> None:
        self.name = name
        self.rule = rule
        self._secrets = [secret.encode() for secret in secrets]

    def accepts(self, sent: Delivery, now_s: float) -> bool:
        """Whether somebody who knows a secret sent this, lately. What exactly is wrong is nobody's business."""
        at, given = _parts(sent.signature)
        known_form = bool(at) and (sent.delivery is None or bool(_DELIVERY.fullmatch(sent.delivery)))
        expected = [_digest(secret, sent.body, at, sent.delivery) for secret in self._secrets]
        same = [hmac.compare_digest(signature.encode(), other.encode()) for signature in expected for other in given]
        return known_form and abs(now_s - int(at)) <= TOLERANCE_S and any(same)

    def signal(self, sent: Delivery) -> AnnounceSignal | None:
        """The signal of an accepted delivery; None if the filter keeps it out. Raises `NotASignal`."""
        at, _ = _parts(sent.signature)
        given = sent.delivery or sha256(f"{at}.".encode() + sent.body).hexdigest()
        # Two senders may count their deliveries alike, and announce under one name.
        return announced(self.rule, _object(sent.body), given_id=f"{self.name}/{given}", source={"hook": self.name})


class Hooks:
    """All hooks, by name."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = dict(hooks)

    def use(self, other: "Hooks") -> None:
        """Be these from now on. A request sees the ones or the others."""
        self._hooks = other._hooks

    def get(self, name: str) -> Hook | None:
        return self._hooks.get(name)

    def __repr__(self) -> str:
        return f"Hooks({sorted(self._hooks)})"

    @classmethod
    def of(cls, file: SourcesFile | None = None, environment: Mapping[str, str] = os.environ) -> "Hooks":
        """The hooks of a file, and those that only have a secret in the environment. Raises `BadSources`."""
        secrets, problems = secrets_in(SECRETS_VARIABLE, environment)
        rules: dict[str, HookRule] = dict(file.hooks) if file else {}
        for name in secrets:
            rules.setdefault(name, HookRule.model_validate({"name": name, "payload": ""}))
        made = {name: Hook(name, rule.secrets + secrets.get(name, []), rule) for name, rule in rules.items()}
        problems += [
            f"hooks.{name}: Expected a secret here or in {SECRETS_VARIABLE}, but found none"
            for name, rule in rules.items()
            if not rule.secrets and name not in secrets
        ]
        if problems:
            raise BadSources(problems)
        return cls(made)


def secrets_in(variable: str, environment: Mapping[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """Secrets by name, of `name:secret,name:secret`, and what is wrong with them; no message shows one."""
    secrets: dict[str, list[str]] = {}
    problems: list[str] = []
    parts = [part.strip() for part in environment.get(variable, "").split(",") if part.strip()]
    for number, part in enumerate(parts, 1):
        name, _, secret = part.partition(":")
        if not re.fullmatch(HOOK, name) or len(secret) < SECRET_CHARS_MIN:
            problems.append(
                f"{variable}: Expected name:secret, with at least {SECRET_CHARS_MIN} characters in the secret, "
                f"but part {number} is different"
            )
        else:
            secrets.setdefault(name, []).append(secret)
    return secrets, problems


def _parts(header: str) -> tuple[str, list[str]]:
    """The time and the signatures of a header; no time if it is none of ours."""
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == "v1"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]) or len(given) > SIGNATURES_MAX:
        return "", []
    return times[0], given


def _digest(secret: bytes, body: bytes, at: str, delivery: str | None) -> str:
    head = f"{at}." if delivery is None else f"{at}.{delivery}."
    return hmac.new(secret, head.encode() + body, sha256).hexdigest()


def _object(body: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise NotASignal(f"Expected a JSON object, but {error}") from None
