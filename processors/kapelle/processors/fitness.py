"""Whether a record can be what its stream carries: its key, whose record it is, and how large its numbers are.

1. The key has the form that the stream declares.
2. A value that names its workflow, instance, trigger or signal names the one of its key: else it would be folded by
   another shard than the one that owns what it names.
3. Times are between the years 1 and 9999, and numbers have room to be counted on. What is outside could be decided on,
   and would then be too large for a table, a record or a date.
4. What its processor reads in it (`Processor.reads`) can be read.

A record that breaks one of them is unfit, and is treated like one that does not decode. These checks are made for each
record that is read, so each is compiled into one expression; only an unfit record is looked at a second time.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, get_args, get_origin

import msgspec

from kapelle.processors.keys import INSTANCE_MAX, READS, READS_MOST, SHOWN_CHARS_MAX, KeyForm, KeyUnreadable
from kapelle.processors.messages import Foreign
from kapelle.processors.moments import TIME_MS_MAX, TIME_MS_MIN
from kapelle.processors.processor import Read, Readers
from kapelle.processors.streams import Keep, Stream

NUMBER_MAX: Final = 2**53 - 1
ASKED_MAX: Final = (
    2**52
)  # of a command: what comes of it may be counted on, and is then still an event that can be read
NO_READERS: Final[Readers] = {}

# Why a value with this key is unfit, in words; None if it is fit.
Unfit = Callable[[str, object], str | None]
Checks = dict[type[object], Unfit]

# The fields that name whose record it is, and the key that they make. The first of which a contract has all counts.
OWNERS: Final = {
    KeyForm.WORKFLOW: ((("workflow_id",), "v.workflow_id"),),
    KeyForm.INSTANCE: (
        (("workflow_id", "instance_id"), "f'{v.workflow_id}/{v.instance_id}'"),
        (("workflow_id",), "f'{v.workflow_id}/{key.rpartition(\"/\")[2]}'"),
    ),
    KeyForm.TASK: ((("workflow_id", "instance_id", "step_id"), "f'{v.workflow_id}/{v.instance_id}/{v.step_id}'"),),
    KeyForm.TRIGGER: ((("workflow_id", "trigger_id"), "f'{v.workflow_id}/{v.trigger_id}'"),),
    KeyForm.SIGNAL: ((("name",), "v.name"),),
    KeyForm.LIMIT: ((("limited",), "v.limited"),),
}

# A key that equals what its owner makes has the form of its stream if the parts have. This is sooner than to match it.
READ_BY_OWNER: Final = {
    (KeyForm.WORKFLOW, "v.workflow_id"): "key and '/' not in key",
    (KeyForm.WORKFLOW, None): "key and '/' not in key",
    (KeyForm.INSTANCE, "f'{v.workflow_id}/{v.instance_id}'"): (
        f"v.workflow_id and '/' not in v.workflow_id and v.instance_id and 0 < v.instance_id <= {INSTANCE_MAX}"
    ),
}


def checks_of(stream: Stream, readers: Readers = NO_READERS) -> Checks:
    """For each type of a stream what tells whether a record of it is unfit."""
    most = NUMBER_MAX if stream.keep is Keep.FOR_EVER else ASKED_MAX
    checks: Checks = {contract: _check(stream.key, contract, most) for contract in stream.contracts}
    return checks | {
        contract: _reading(checks[contract], readers[contract]) for contract in checks if contract in readers
    }


def _reading(check: Unfit, read: Read[object]) -> Unfit:
    def check_and_read(key: str, value: object) -> str | None:
        reason = check(key, value)
        if reason is not None:
            return reason
        try:
            read(value)
        except Exception as error:  # noqa: BLE001 - all that it does is read, so whatever it raises is about the record
            return f"Expected a {type(value).__name__} that can be read, but {type(error).__name__}: {error}"
        return None

    return check_and_read


def unfit(stream: Stream, key: str, value: object) -> str | None:
    """Why a record of a stream is unfit, in words; None if it is fit."""
    check = checks_of_kept(stream).get(type(value))
    if check is None:
        return f"Expected an event of {stream.name}, but found {type(value).__name__}"
    return check(key, value)


@cache
def checks_of_kept(stream: Stream) -> Checks:
    """The same as `checks_of`, made once for each stream."""
    return checks_of(stream)


@cache
def _check(form: KeyForm, contract: type[msgspec.Struct], most: int) -> Unfit:
    if form is KeyForm.ANY or contract is Foreign:
        return _fit
    owner, bounds = _owner(form, contract), list(_bounds(contract, "v", most))
    reads = READ_BY_OWNER.get((form, owner), "reads(key)")
    terms = [reads, *([f"key == {owner}"] if owner else []), *(expression for _, expression in bounds)]
    source = f"lambda key, v: None if {' and '.join(terms)} else explain(key, v)"

    def explain(key: str, value: object) -> str | None:
        if not READS[form](key):
            return str(KeyUnreadable(form, key))
        if owner:
            expected = str(eval(owner, {"key": key, "v": value}))  # noqa: S307 - an expression of `OWNERS`
            if expected != key:
                return (
                    f"Expected the key {expected[:SHOWN_CHARS_MAX]!r}, which {contract.__name__} names, "
                    f"but found {key[:SHOWN_CHARS_MAX]!r}"
                )
        names = [name for name, text in bounds if not eval(text, {"v": value})]  # noqa: S307 - of `_bounds`
        if not names:
            return None
        return f"Expected {', '.join(names)} of {contract.__name__} within bounds, but it is too large or too small"

    made: Unfit = eval(source, {"reads": READS_MOST[form], "explain": explain})  # noqa: S307 - made of names of fields
    return made


def _fit(_: str, __: object) -> None:
    """Nothing is asked of it."""


def _owner(form: KeyForm, contract: type[msgspec.Struct]) -> str | None:
    names = {field.name for field in msgspec.structs.fields(contract)}
    return next((made for fields, made in OWNERS[form] if names.issuperset(fields)), None)


def _bounds(contract: type[msgspec.Struct], value: str, number_max: int) -> Iterator[tuple[str, str]]:
    """The fields that are numbers, and an expression for each that is true if it is within its bounds."""
    names = {field.name for field in msgspec.structs.fields(contract)}
    for field in msgspec.structs.fields(contract):
        if field.name.endswith("instance_id") and "request_id" in names and number_max == ASKED_MAX:
            continue  # the decision refuses it, so that the caller gets an answer
        at, kinds, is_many = f"{value}.{field.name}", (field.type, *get_args(field.type)), _is_many(field.type)
        if int in kinds and get_origin(field.type) is not dict:
            yield field.name, _within(field.type, at, _range(field.name, number_max))
        for inner in kinds:
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                many = at if is_many else f"(({at},) if {at} is not None else ())"
                for name, expression in _bounds(inner, "one", number_max):
                    yield f"{field.name}.{name}", f"all({expression} for one in {many})"


def _within(kind: object, at: str, bounds: tuple[int, int]) -> str:
    """An expression that is true if a number is within its bounds; if there may be many or none, all of them."""
    least, most = bounds
    if _is_many(kind):
        return f"all({least} <= one <= {most} for one in {at})"
    within = f"{least} <= {at} <= {most}"
    return f"({at} is None or {within})" if type(None) in get_args(kind) else within


def _is_many(kind: object) -> bool:
    return get_origin(kind) is tuple


def _range(name: str, number_max: int) -> tuple[int, int]:
    if name.endswith("at_ms"):
        return TIME_MS_MIN, TIME_MS_MAX
    return 0, INSTANCE_MAX if name.endswith("instance_id") else number_max
