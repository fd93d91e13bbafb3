"""Addresses in messages: only the scheme and the host, because everything else may hold a secret."""

import re

SHOWN_CHARS_MAX = 100


def origin_of(url: str) -> str:
    """The scheme and the host of an address, which may be malformed. Credentials are shown as `***`."""
    scheme, separator, rest = url.partition("://")
    if not separator or not scheme.isalnum():
        scheme, separator, rest = "", "", url
    host = re.split(r"[/\\?#]", rest.rpartition("@")[2], maxsplit=1)[0]
    hidden = "***@" if "@" in rest else ""
    return f"{scheme}{separator}{hidden}{host}"[:SHOWN_CHARS_MAX]
