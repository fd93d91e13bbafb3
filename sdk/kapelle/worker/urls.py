"""URLs as every parser reads them, and as they may be shown."""

from typing import Final
from urllib.parse import urlsplit

import httpx

from kapelle.worker.errors import NonRetryable

SCHEMES: Final = ("http", "https")
SHOWN_CHARS_MAX: Final = 300


def parsed(text: str) -> httpx.URL:
    """A URL of http or https. One that another parser would take for another host is refused."""
    try:
        url, split = httpx.URL(fit(text)), urlsplit(text)
        others = split.hostname, split.port
    except (httpx.InvalidURL, ValueError) as error:
        raise NonRetryable(f"Expected a URL, but found {shown(text)!r}: {type(error).__name__}") from error
    if url.scheme not in SCHEMES or not url.host:
        raise NonRetryable(f"Expected a URL of http or https, but found {shown(text)!r}")
    if others[0] not in (url.host, url.raw_host.decode()) or (others[1] or _port(url)) != _port(url):
        raise NonRetryable(f"Expected a URL that names one host, but it can be read as {others[0]!r} or {url.host!r}")
    return url


def fit(text: str) -> str:
    """The text of a URL, if it has none of the characters that parsers treat differently."""
    unfit = next((char for char in text if char == "\\" or char.isspace() or not char.isprintable()), None)
    if unfit is not None:
        raise NonRetryable(f"Expected a URL without backslashes, blanks and control characters, but found {unfit!r}")
    return text


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def shown(text: str) -> str:
    """A URL for log lines and messages: credentials, the query and the fragment are left out."""
    scheme, colon, rest = text.partition("://")
    if not colon:
        scheme, rest = "", text
    plain = rest.partition("#")[0]
    before, question_mark, _ = plain.partition("?")
    authority, slash, path = before.replace("\\", "/").partition("/")
    host = authority.rpartition("@")[2]
    shown_path = "…" if "@" in path else path  # for another parser the credentials may end there
    return f"{scheme}{colon}{host}{slash}{shown_path}{'?…' if question_mark else ''}"[:SHOWN_CHARS_MAX]
