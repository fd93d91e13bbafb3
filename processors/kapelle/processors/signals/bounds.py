"""Limits of a signal. Its content is repeated in offers, joins of eight names and starts, each within one record."""

from collections.abc import Mapping
from typing import Final, TypeGuard

import msgspec

from kapelle.processors.moments import TIME_MS_MAX, TIME_MS_MIN
from kapelle.processors.signals.matching import Scalar
from kapelle.schemas import contracts as c

NAME_CHARS_MAX: Final = 256
ID_CHARS_MAX: Final = 1_024
PARAMS_MAX: Final = 128
PARAMS_BYTES_MAX: Final = 16_384
PAYLOAD_BYTES_MAX: Final = 262_144
SOURCE_BYTES_MAX: Final = 16_384
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

# The parameters of a signal from their JSON. Raises `msgspec.MsgspecError`.
params_in: Final = msgspec.json.Decoder(dict[str, Scalar]).decode


def is_param(value: object) -> TypeGuard[Scalar]:
    """Whether a value can be a parameter of a signal: a string, or an integer of 64 bits."""
    return isinstance(value, str) or (type(value) is int and LONG_MIN <= value <= LONG_MAX)


def divided(content: Mapping[str, object]) -> tuple[dict[str, Scalar], dict[str, object]]:
    """The parameters among the members of an object; the others are payload."""
    params = {name: value for name, value in content.items() if is_param(value)}
    return params, {name: value for name, value in content.items() if name not in params}


def too_large(signal: c.AnnounceSignal) -> str | None:
    """What is too large in a signal, in words; None if nothing is."""
    if _is_small(signal):
        return None
    if not 0 < len(signal.name) <= NAME_CHARS_MAX:
        return f"Expected the name of a signal with 1 to {NAME_CHARS_MAX} characters, but it has {len(signal.name)}"
    if not 0 < len(signal.signal_id) <= ID_CHARS_MAX:
        return f"Expected an id of a signal with 1 to {ID_CHARS_MAX:,} characters, but it has {len(signal.signal_id):,}"
    for what, text, most in (
        ("parameters", signal.params, PARAMS_BYTES_MAX),
        ("payload", signal.payload, PAYLOAD_BYTES_MAX),
        ("source", signal.source, SOURCE_BYTES_MAX),
    ):
        if (size_bytes := len(text.encode("utf-8", "surrogatepass"))) > most:
            return f"Expected at most {most:,} bytes of {what} in a signal, but found {size_bytes:,}"
    return None


def _is_small(signal: c.AnnounceSignal) -> bool:
    """Whether nothing can be too large: a character takes four bytes at the most, so most signals are not measured."""
    return (
        0 < len(signal.name) <= NAME_CHARS_MAX
        and 0 < len(signal.signal_id) <= ID_CHARS_MAX
        and 4 * len(signal.params) <= PARAMS_BYTES_MAX
        and 4 * len(signal.payload) <= PAYLOAD_BYTES_MAX
        and 4 * len(signal.source) <= SOURCE_BYTES_MAX
    )


def unfit(signal: c.AnnounceSignal) -> str | None:
    """Why a signal cannot be taken, in words; None if it can."""
    try:
        params = params_in(signal.params)
    except msgspec.MsgspecError as error:
        return f"Expected the parameters of a signal as strings and integers by name, but {error}"
    for value in params.values():
        if not is_param(value):
            return "Expected integers of 64 bits as parameters of a signal, but found a larger one"
    if signal.happened_at_ms is not None and not TIME_MS_MIN <= signal.happened_at_ms <= TIME_MS_MAX:
        return f"Expected a signal to happen in the years 1 to 9999, but found {signal.happened_at_ms} ms"
    return too_large(signal)
