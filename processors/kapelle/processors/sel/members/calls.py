"""The closures of member accesses: `value.method(…)`, `value.field`, `Type.method(…)`, `Type.FIELD`."""

from collections.abc import Callable

from kapelle.processors.sel.errors import BadValue, SelError, Span, Unsupported
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import Member, invoke, unknown_member
from kapelle.processors.sel.members.registry import FIELDS, METHODS, STATIC
from kapelle.processors.sel.types import TYPES
from kapelle.processors.sel.values import Array, box, kind_of

Suffix = Callable[[Frame, Value], Value]
TYPE_NAMES: dict[type, str] = {kind: name for name, kind in reversed(TYPES.items())}


def method_of(target: Value, name: str) -> Member:
    """The method in the whitelist of the target's type; static ones can be called on a value too, as in Java."""
    if target is None:
        raise BadValue(f"Expected a value before .{name}(), but found NULL")
    table = METHODS.get(target.__class__)
    if table is None:
        raise Unsupported(f"Expected a value with methods before .{name}(), but found {kind_of(target)}")
    member = table.get(name)
    if member is None:
        static = STATIC.get(TYPE_NAMES.get(target.__class__, ""), {})
        member = static.get(name)
        if member is None:
            raise unknown_member(kind_of(target), name, {**static, **table})
    return member


def suffix_call(name: str, arguments: list[Expression], span: Span) -> Suffix:
    """`.name(arguments)`."""

    def run(f: Frame, target: Value) -> Value:
        try:
            method = method_of(target, name)
            return invoke(method, name, f, target, [argument(f) for argument in arguments])
        except SelError as error:
            raise error.placed(span) from None

    return run


def suffix_field(name: str, span: Span) -> Suffix:
    """`.name`: only arrays have a field."""

    def run(_: Frame, target: Value) -> Value:
        if name == "length" and isinstance(target, Array):
            return len(target)
        hint = "did you mean length()?" if name == "length" and target.__class__ is str else ""
        if target is None:
            raise BadValue(f"Expected a value before .{name}, but found NULL", span=span, hint=hint)
        raise Unsupported(
            f"Expected a field of {kind_of(target)}, but found {name[:64]!r}",
            span=span,
            hint=hint or _as_call(target, name),
        )

    return run


def _as_call(target: Value, name: str) -> str:
    return f"did you mean {name}()?" if name in METHODS.get(target.__class__, {}) else ""


def static_call(owner: str, name: str, arguments: list[Expression], span: Span) -> Expression | SelError:
    """`Owner.name(arguments)`, or the error if there is no such method."""
    table = STATIC[owner]
    member = table.get(name)
    if member is None:
        if owner == "Util":
            return _registered(name, arguments, span)
        return unknown_member(owner, name, table).placed(span)

    def run(f: Frame) -> Value:
        try:
            return invoke(member, name, f, None, [argument(f) for argument in arguments])
        except SelError as error:
            raise error.placed(span) from None

    return run


def _registered(name: str, arguments: list[Expression], span: Span) -> Expression:
    """A function that the caller added to Util."""

    def run(f: Frame) -> Value:
        function = f.host.functions.get(name)
        if function is None:
            raise unknown_member("Util", name, STATIC["Util"]).placed(span)
        f.work(100)
        try:
            return box(f, function(*[argument(f) for argument in arguments]))
        except SelError as error:
            raise error.placed(span) from None

    return run


def static_field(owner: str, name: str, span: Span) -> Expression | SelError:
    """`Owner.NAME`, or the error if there is no such field."""
    fields = FIELDS.get(owner, {})
    if name not in fields:
        hint = f"did you mean {owner}.{name}()?" if name in STATIC[owner] else ""
        return Unsupported(f"Expected a field of {owner}, but found {name[:64]!r}", span=span, hint=hint)
    value = fields[name]
    return lambda _: value
