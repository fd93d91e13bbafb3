"""Which table belongs to which type or name: the whole whitelist of the language on one page."""

from collections.abc import Mapping

from kapelle.processors.sel.joda.formatter import Formatter
from kapelle.processors.sel.joda.moment import DateTime, Days, Property
from kapelle.processors.sel.joda.zone import UTC, Zone
from kapelle.processors.sel.limits import Value
from kapelle.processors.sel.members import maps, numbers, params, strings, times, util
from kapelle.processors.sel.members.member import Table
from kapelle.processors.sel.types import TYPES, Uuid
from kapelle.processors.sel.values import ARRAYS, KIND_NAMES

METHODS: dict[type, Table] = {
    str: strings.METHODS,
    int: numbers.LONG_METHODS,
    float: numbers.DOUBLE_METHODS,
    bool: numbers.BOOLEAN_METHODS,
    dict: maps.METHODS,
    **dict.fromkeys(ARRAYS.values(), maps.ARRAY_METHODS),
    DateTime: times.MOMENT_METHODS,
    Zone: times.ZONE_METHODS,
    Formatter: times.FORMATTER_METHODS,
    Property: times.PROPERTY_METHODS,
    Days: times.DAYS_METHODS,
    Uuid: util.UUID_METHODS,
    params.Params: params.METHODS,
}
KIND_NAMES[params.Params] = "PARAMS"

STATIC: dict[str, Table] = {
    "String": strings.STATIC,
    **dict.fromkeys(("int", "long", "Integer", "Long"), numbers.LONG_STATIC),
    **dict.fromkeys(("float", "double", "Float", "Double"), numbers.DOUBLE_STATIC),
    **{name: {} for name in ("boolean", "Boolean", "Map", "HashMap", "LinkedHashMap", "Property")},
    "DateTime": times.MOMENT_STATIC,
    "DateTimeZone": times.ZONE_STATIC,
    **dict.fromkeys(("DateTimeFormat", "DateTimeFormatter"), times.FORMATTER_STATIC),
    "Days": times.DAYS_STATIC,
    "UUID": util.UUID_STATIC,
    "Math": numbers.MATH,
    "System": util.SYSTEM,
    "Arrays": util.ARRAYS,
    "DateTimeConstants": {},
    "Util": util.UTIL,
}
FIELDS: dict[str, Mapping[str, Value]] = {"DateTimeZone": {"UTC": UTC}, "DateTimeConstants": util.CONSTANTS}
NEW: Table = {**strings.NEW, **numbers.NEW, **maps.NEW, **times.NEW}
# Names that are never inputs. `params` is one: it stands for all of them, and name analysis reports it.
STATIC_NAMES = frozenset(STATIC) | frozenset(TYPES)
