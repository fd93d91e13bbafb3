"""The type names that an expression may write, and what each stands for."""

from kapelle.processors.sel.errors import SelError, TypeMismatch, Unsupported, did_you_mean
from kapelle.processors.sel.joda.formatter import Formatter
from kapelle.processors.sel.joda.moment import DateTime, Days, Property
from kapelle.processors.sel.joda.zone import Zone
from kapelle.processors.sel.limits import Value
from kapelle.processors.sel.values import ARRAYS, KIND_NAMES, PRIMITIVES, Array, kind_of


class Uuid(str):
    """A UUID: its text is asked for by toString()."""

    __slots__ = ()

    def sel_text(self) -> str:
        """The text of the id."""
        return str(self)


KIND_NAMES.update(
    {
        DateTime: "DATETIME",
        Zone: "DATETIME_ZONE",
        Formatter: "DATETIME_FORMATTER",
        Property: "DATETIME_PROPERTY",
        Days: "DATETIME_DAYS",
        Uuid: "UUID",
    }
)

TYPES: dict[str, type] = {
    **dict.fromkeys(("int", "long", "Integer", "Long"), int),
    **dict.fromkeys(("float", "double", "Float", "Double"), float),
    **dict.fromkeys(("boolean", "Boolean"), bool),
    "String": str,
    **dict.fromkeys(("Map", "HashMap", "LinkedHashMap"), dict),
    "DateTime": DateTime,
    "DateTimeZone": Zone,
    **dict.fromkeys(("DateTimeFormat", "DateTimeFormatter"), Formatter),
    "Property": Property,
    "Days": Days,
    "UUID": Uuid,
}
DEFAULTS: dict[type, Value] = {int: 0, float: 0.0, bool: False}


def type_named(name: str, *, is_array: bool = False) -> type:
    """The type of that name, or an error with the nearest name."""
    value_type = TYPES.get(name)
    if value_type is None:
        raise unknown_type(name)
    return array_of(value_type, name) if is_array else value_type


def unknown_type(name: str) -> SelError:
    """The error for a class that is not in the language."""
    hint = {"Object": "write the type itself, or no type at all", "List": "write an array such as String[]"}.get(name)
    return Unsupported(f"Expected a class of SEL, but found {name[:64]!r}", hint=hint or did_you_mean(name, TYPES))


def array_of(element: type, name: str) -> type[Array]:
    """The array type of that element type."""
    if element not in ARRAYS:
        raise Unsupported(f"Expected an array of String, long, double or boolean, but found an array of {name}")
    return ARRAYS[element]


def coerced(kind: type, value: Value) -> Value:
    """The value for a variable of that type: LONG widens to DOUBLE, null fits what is not a number or a boolean."""
    cls = value.__class__
    if cls is kind:
        return value
    if kind is float and cls is int:
        return float(value)
    if value is None and kind not in PRIMITIVES:
        return None
    raise TypeMismatch(f"Expected {KIND_NAMES[kind]}, but found {kind_of(value)}")
