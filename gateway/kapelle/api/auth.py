"""Who may do what: bearer tokens with roles.

| role | may |
|---|---|
| viewer | read |
| operator | read; start, stop, restart, skip, unblock; take tasks and answer |
| admin | all of that; push, delete, activate, change properties |

Without tokens there are no roles. Then only this machine may ask, and no page of a browser that came from elsewhere.
"""

import hmac
import os
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from kapelle.api.errors import BadTokens, ExposedWithoutTokens

TOKENS_VARIABLE: Final = "KAPELLE_TOKENS"
TOKEN_CHARS_MIN: Final = 8
SCHEME: Final = "bearer"
PORT_MAX: Final = 65_535
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# host[:port] as RFC 3986 has it. Whatever else is in the header is not taken apart: others would do it differently.
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::(?P<port>[0-9]{1,5}))?")


class Role(IntEnum):
    """What a caller may do. A greater role may do all that a smaller one may."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


class Tokens:
    """Tokens and their roles. They are compared in constant time and never shown."""

    def __init__(self, roles: Sequence[tuple[Role, str]]) -> None:
        if not roles:
            raise BadTokens("Expected at least one token, but found none")
        for number, (_, token) in enumerate(roles, 1):
            if len(token) < TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable() or " " in token:
                raise BadTokens(
                    f"Expected a token of at least {TOKEN_CHARS_MIN} visible ASCII characters, "
                    f"but token {number} is shorter or has other characters"
                )
        self._roles = [(role, token.encode()) for role, token in roles]

    def __repr__(self) -> str:
        return f"Tokens({len(self._roles)})"

    def role_of(self, token: str) -> Role | None:
        """The role of a token; None if it is not one of ours. It takes as long for each."""
        given = token.encode(errors="replace")
        roles = [role for role, known in self._roles if hmac.compare_digest(known, given)]
        return max(roles, default=None)

    @classmethod
    def from_file(cls, path: Path) -> "Tokens":
        """The tokens in the lines of a file: `role token`. Lines that are empty or begin with # say nothing."""
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadTokens(f"Expected a file of tokens at {path}, but it cannot be read: {error}") from error
        numbered = [(number, line.split()) for number, line in enumerate(lines, 1)]
        pairs = [(number, words) for number, words in numbered if words and not words[0].startswith("#")]
        return cls([_pair(words, f"line {number} of {path}") for number, words in pairs])

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Tokens | None":
        """The tokens in KAPELLE_TOKENS: `role:token,role:token`; None if it is not set."""
        text = environment.get(TOKENS_VARIABLE, "").strip()
        if not text:
            return None
        parts = [part.strip().split(":", 1) for part in text.split(",") if part.strip()]
        return cls([_pair(words, f"token {number} of {TOKENS_VARIABLE}") for number, words in enumerate(parts, 1)])


def _pair(words: Sequence[str], where: str) -> tuple[Role, str]:
    if len(words) != 2 or words[0].upper() not in Role.__members__:
        raise BadTokens(f"Expected viewer, operator or admin and a token in {where}, but found other words")
    return Role[words[0].upper()], words[1]


def check_exposure(host: str, tokens: Tokens | None) -> None:
    """Refuse an address that others can reach, unless there are tokens."""
    if tokens is None and not is_loopback(host):
        raise ExposedWithoutTokens(host or "every address")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str | None:
    """The host in `host` or `host:port`; None if it is anything else."""
    match = _HOST.fullmatch(authority)
    if match is None or int(match["port"] or 0) > PORT_MAX:
        return None
    return match["host"]


def is_local(host_header: str | None, origin: str | None) -> bool:
    """Whether a request that needs no token was meant for this machine, and not sent by a page from elsewhere."""
    names = [host_of(host_header)] if host_header else []
    if origin:
        scheme, _, authority = origin.partition("://")
        names.append(host_of(authority) if scheme in ("http", "https") else None)
    return all(name is not None and is_loopback(name) for name in names)


def is_same_origin(origin: str, host_header: str | None) -> bool:
    """Whether a page was served by the address that it sends a request to."""
    scheme, _, authority = origin.lower().partition("://")
    return scheme in DEFAULT_PORTS and _with_port(authority, scheme) == _with_port((host_header or "").lower(), scheme)


def _with_port(authority: str, scheme: str) -> str:
    return authority if authority.rpartition(":")[2].isdigit() else f"{authority}:{DEFAULT_PORTS[scheme]}"
