"""How large the start of a child may be: a step whose children do not fit into a record fails before it starts any."""

from collections.abc import Iterable, Mapping
from typing import Final

# A record holds a million bytes. The rest is for ids, and for what the start of the run tells about its steps.
START_BYTES_MAX: Final = 900_000
UTF8_MAX: Final = 4  # bytes of a character


def too_large(what: str, parts: Mapping[str, Iterable[str]]) -> str | None:
    """Why these texts do not fit into the start of a child, with the size of each part; None if they do."""
    sizes = {name: sum(len(text.encode()) for text in texts) for name, texts in parts.items()}
    total = sum(sizes.values())
    if total <= START_BYTES_MAX:
        return None
    named = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return f"Expected {what} within {START_BYTES_MAX:,} bytes, but found {total:,}: {named}"
