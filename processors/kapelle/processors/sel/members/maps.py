"""Members of Map, and the one of arrays. Keys are strings; an entry may be a variable's `Cell`, looked through."""

from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import ANY, STRING, Table, member
from kapelle.processors.sel.values import Cell

ENTRY_BYTES = 96


def _seen(value: Value) -> Value:
    return value.value if value.__class__ is Cell else value


def put(frame: Frame, target: dict[str, Value], key: str, value: Value) -> Value:
    """Set an entry; the value before it comes back."""
    before = target.get(key)
    if key not in target:
        frame.spend(ENTRY_BYTES)
    target[key] = value
    return _seen(before)


def _get_or_default(_: Frame, target: dict[str, Value], key: str, default: Value) -> Value:
    return _seen(target[key]) if key in target else default


def _new(frame: Frame) -> dict[str, Value]:
    frame.spend(ENTRY_BYTES)
    return {}


METHODS: Table = {
    "size": member(lambda _, m: len(m)),
    "get": member(lambda _, m, k: _seen(m.get(k)), (STRING,)),
    "containsKey": member(lambda _, m, k: k in m, (STRING,)),
    "put": member(put, (STRING, ANY)),
    "getOrDefault": member(_get_or_default, (STRING, ANY)),
}
ARRAY_METHODS: Table = {"size": member(lambda _, array: len(array))}  # as what Arrays.asList makes of it
NEW: Table = dict.fromkeys(("Map", "HashMap", "LinkedHashMap"), member(_new))
