"""What a member is, and how its arguments are checked and counted.

Every string that a member is given is counted here, before the member sees it: to hash, to compare or to copy it takes
time in proportion to its length. A member counts for itself what it reads of its target, and what it makes.
"""

from collections.abc import Callable, Mapping

import msgspec

from kapelle.processors.sel.errors import SelError, TypeMismatch, Unsupported, did_you_mean
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.values import KIND_NAMES, kind_of

SHORT_CHARS = 64  # the price of the node pays for strings up to this length
Accept = frozenset[type] | None
Run = Callable[..., Value]

STRING: Accept = frozenset({str})
LONG: Accept = frozenset({int})
DOUBLE: Accept = frozenset({float})
NUMBER: Accept = frozenset({int, float})
BOOLEAN: Accept = frozenset({bool})
TEXT_OR_LONG: Accept = frozenset({str, int})
ANY: Accept = None


class Member(msgspec.Struct, frozen=True):
    """A function `run(frame, target, *arguments)` and the argument types that it takes, by their number."""

    run: Run
    accepts: Mapping[int, tuple[Accept, ...]]
    variadic: bool = False


Table = Mapping[str, Member]


def member(run: Run, *signatures: tuple[Accept, ...]) -> Member:
    """A member with one signature for each number of arguments."""
    return Member(run, {len(signature): signature for signature in signatures or ((),)})


def variadic(run: Run) -> Member:
    """A member that checks its arguments itself."""
    return Member(run, {}, variadic=True)


def invoke(member: Member, name: str, frame: Frame, target: Value, args: list[Value]) -> Value:
    """Check the arguments and call."""
    if member.variadic:
        for arg in args:
            if arg.__class__ is str and len(arg) > SHORT_CHARS:
                frame.scan(len(arg))
    else:
        check(member, name, frame, args)
    return member.run(frame, target, *args)


def construct(member: Member, name: str, frame: Frame, args: list[Value]) -> Value:
    """Check the arguments and make an object. A constructor has no target."""
    check(member, f"new {name}", frame, args)
    return member.run(frame, *args)


def check(member: Member, name: str, frame: Frame, args: list[Value]) -> None:
    """Refuse a wrong number of arguments, or arguments of the wrong type, and count the strings among them."""
    accepts = member.accepts.get(len(args))
    if accepts is None:
        counts = " or ".join(str(n) for n in sorted(member.accepts))
        raise TypeMismatch(f"Expected {name}() to be given {counts} arguments, but found {len(args)}")
    for accept, arg in zip(accepts, args, strict=True):
        cls = arg.__class__
        if cls is str and len(arg) > SHORT_CHARS:
            frame.scan(len(arg))
        if accept is not None and cls not in accept:
            kinds = " or ".join(sorted(KIND_NAMES[a] for a in accept))
            number = next(i for i, a in enumerate(args, start=1) if a is arg)
            raise TypeMismatch(f"Expected {kinds} as argument {number} of {name}(), but found {kind_of(arg)}")


def unknown_member(owner: str, name: str, known: Table, *, what: str = "method") -> SelError:
    """The error for a member that is not in the table."""
    hint = did_you_mean(name, known)
    return Unsupported(f"Expected a {what} of {owner}, but found {name[:64]!r}", hint=hint)
