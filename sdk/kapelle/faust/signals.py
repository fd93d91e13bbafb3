"""Signals to announce, checked as the engine checks them: one that is refused here would become a dead letter there."""

import json
from collections.abc import Mapping
from typing import Final

from kapelle.faust.errors import BadSignal
from kapelle.schemas import contracts as c

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
NAME_CHARS_MAX: Final = 256
ID_CHARS_MAX: Final = 1_024
PARAMS_MAX: Final = 128
PARAMS_BYTES_MAX: Final = 16_384
PAYLOAD_BYTES_MAX: Final = 262_144


def signal(
    name: str,
    params: Mapping[str, str | int],
    *,
    payload: Mapping[str, object],
    id: str = "",  # noqa: A002 - the word that users know it by
    happened_at_ms: int | None = None,
) -> c.AnnounceSignal:
    """A signal in our own form. Raises `BadSignal`."""
    if not 0 < len(name) <= NAME_CHARS_MAX:
        raise BadSignal(f"Expected a name of 1 to {NAME_CHARS_MAX} characters, but found {len(name)}")
    if len(id) > ID_CHARS_MAX:
        raise BadSignal(f"Expected an id of at most {ID_CHARS_MAX} characters for {name!r}, but found {len(id)}")
    if len(params) > PARAMS_MAX:
        raise BadSignal(f"Expected at most {PARAMS_MAX} parameters of {name!r}, but found {len(params)}")
    for key, value in params.items():
        if not isinstance(value, str) and not (type(value) is int and LONG_MIN <= value <= LONG_MAX):
            raise BadSignal(f"Expected a string or an integer of 64 bits for {key!r} of {name!r}, but found {value!r}")
    return c.AnnounceSignal(
        name=name,
        signal_id=id,
        params=_json(f"parameters of {name!r}", params, bytes_max=PARAMS_BYTES_MAX),
        payload=_json(f"a payload of {name!r}", payload, bytes_max=PAYLOAD_BYTES_MAX),
        happened_at_ms=happened_at_ms,
    )


def _json(what: str, content: Mapping[str, object], *, bytes_max: int) -> str:
    try:
        text = json.dumps(dict(content), sort_keys=True, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSignal(f"Expected {what} that JSON can hold, but {error}") from None
    if size > bytes_max:
        raise BadSignal(f"Expected {what} of at most {bytes_max} bytes, but found {size}")
    return text
