"""Names at run time: inputs, and the variables of an expression with their types.

A variable lives in a slot of the frame. If a map may refer to it, the slot holds a `Cell`, so that assigning to the
variable changes the map's entry too. A variable keeps the type of its first value: LONG widens to DOUBLE, null fits
what is not a number or a boolean, anything else is an error. Assigning to a name that was an input until then makes a
variable; the input itself never changes. Before that the name is the input only if name analysis has reported it, so
that a result depends on the reported names alone.
"""

from kapelle.processors.sel.errors import SelError, Span, TypeMismatch
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.types import DEFAULTS, coerced
from kapelle.processors.sel.values import KIND_NAMES, LONG_MAX, LONG_MIN, PRIMITIVES, Cell, box, kind_of

NONE = type(None)


class Unset:
    """What a slot holds before its variable is assigned."""

    __slots__ = ()


UNSET = Unset()
PLAIN = frozenset({str, bool, float})


def input_value(name: str) -> Expression:
    """The closure that reads an input. An unknown name is NULL."""

    def run(f: Frame, low: int = LONG_MIN, high: int = LONG_MAX) -> Value:
        try:
            value: Value = f.inputs[name]
        except KeyError:
            return None
        if value.__class__ is int:
            if low <= value <= high:
                return value
        elif value.__class__ in PLAIN:
            return value
        return _boxed(f, name, value)

    return run


def _boxed(f: Frame, name: str, value: Value) -> Value:
    """Arrays and maps are copied once for each evaluation: what an expression puts into one it finds there again."""
    if value is None:
        return None
    if f.boxed is None:
        f.boxed = {}
    if name not in f.boxed:
        f.boxed[name] = box(f, value)
    return f.boxed[name]


def _null(_: Frame) -> None:
    return None


class Variable:
    """The closures of one variable."""

    def __init__(self, name: str, slot: int, *, shared: bool, is_input: bool) -> None:
        self.name = name
        self.slot = slot
        self.shared = shared
        self._input = input_value(name) if is_input else _null

    def reader(self) -> Expression:
        """Read it, or the input of the same name if it was not assigned yet."""
        slot, fallback = self.slot, self._input

        def run(f: Frame) -> Value:
            value = f.slots[slot]
            return fallback(f) if value is UNSET else value

        def run_shared(f: Frame) -> Value:
            value = f.slots[slot]
            return fallback(f) if value is UNSET else value.value

        return run_shared if self.shared else run

    def reference(self) -> Expression:
        """The cell itself, for a map to refer to."""
        slot, fallback = self.slot, self._input

        def run(f: Frame) -> Value:
            cell = f.slots[slot]
            if cell is UNSET:
                value = fallback(f)
                if value is None:
                    return None
                cell = f.slots[slot] = Cell(value)
            return cell

        return run

    def declare(self, f: Frame, kind: type, value: Value) -> None:
        """Begin the variable anew, with a declared type."""
        value = coerced(kind, value)
        if value is None:
            self._remember(f, kind)
        f.slots[self.slot] = Cell(value) if self.shared else value

    def declare_default(self, f: Frame, kind: type) -> None:
        """`Type name;`"""
        self.declare(f, kind, DEFAULTS.get(kind))

    def assign(self, f: Frame, value: Value, span: Span) -> Value:
        """Give it a value of its type."""
        slot = self.slot
        old = f.slots[slot]
        if old is UNSET:
            f.slots[slot] = Cell(value) if self.shared else value
            return value
        before = old.value if self.shared else old
        if before.__class__ is not value.__class__ or value is None:
            value = self._fitted(f, before, value, span)
        if self.shared:
            old.value = value
        else:
            f.slots[slot] = value
        return value

    def _fitted(self, f: Frame, before: Value, value: Value, span: Span) -> Value:
        kind: type | None = before.__class__
        if before is None:
            kind = f.kinds.get(self.slot) if f.kinds else None
        if kind is None:
            return value
        if value is None and kind not in PRIMITIVES:
            self._remember(f, kind)
            return None
        try:
            return coerced(kind, value)
        except SelError:
            raise TypeMismatch(
                f"Expected {KIND_NAMES[kind]} for the variable {self.name[:64]!r}, but found {kind_of(value)}",
                span=span,
                hint="a variable keeps its type; use another name",
            ) from None

    def _remember(self, f: Frame, kind: type) -> None:
        if f.kinds is None:
            f.kinds = {}
        f.kinds[self.slot] = kind
