"""SEL, a small safe expression language: a subset of Java's expressions and statements.

The package is pure: it knows no clock, no random number, no file. `docs/sel.md` is the reference.
"""

from kapelle.processors.sel.errors import (
    BadValue,
    ExtensionFailed,
    InvalidResult,
    LimitExceeded,
    ParseError,
    SelError,
    Thrown,
    TypeMismatch,
    Unsupported,
)
from kapelle.processors.sel.limits import DEFAULT_LIMITS, Budget, Extension, Host, Limits, Value
from kapelle.processors.sel.program import Program, Result, Sel
from kapelle.processors.sel.seeded import seeded
from kapelle.processors.sel.values import BooleanArray, DoubleArray, LongArray, StringArray

__all__ = [
    "DEFAULT_LIMITS",
    "BadValue",
    "BooleanArray",
    "Budget",
    "DoubleArray",
    "Extension",
    "ExtensionFailed",
    "Host",
    "InvalidResult",
    "LimitExceeded",
    "Limits",
    "LongArray",
    "ParseError",
    "Program",
    "Result",
    "Sel",
    "SelError",
    "StringArray",
    "Thrown",
    "TypeMismatch",
    "Unsupported",
    "Value",
    "seeded",
]
