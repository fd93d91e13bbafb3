"""The words that definitions use: types, modes, sources."""

from enum import StrEnum
from typing import Any, Final

# The value of a parameter: a string, int, Decimal or float, bool, array, or a dict of these or of definitions.
ParamValue = Any


class ParamType(StrEnum):
    """The types of parameters."""

    STRING = "STRING"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING_ARRAY = "STRING_ARRAY"
    LONG_ARRAY = "LONG_ARRAY"
    DOUBLE_ARRAY = "DOUBLE_ARRAY"
    BOOLEAN_ARRAY = "BOOLEAN_ARRAY"
    STRING_MAP = "STRING_MAP"
    MAP = "MAP"


class Mode(StrEnum):
    """Who may change a parameter, from the least strict to the strictest."""

    MUTABLE = "MUTABLE"  # anyone, output data included
    MUTABLE_ON_START_RESTART = "MUTABLE_ON_START_RESTART"  # who starts or restarts
    MUTABLE_ON_START = "MUTABLE_ON_START"  # who starts
    IMMUTABLE = "IMMUTABLE"  # only the definition; evaluated again on restart
    CONSTANT = "CONSTANT"  # nobody

    @property
    def strictness(self) -> int:
        """The place in the order of strictness."""
        return STRICTNESS[self]


STRICTNESS: Final = {mode: place for place, mode in enumerate(Mode)}


class Source(StrEnum):
    """At which stage a parameter was set."""

    SYSTEM = "SYSTEM"
    TEMPLATE_SCHEMA = "TEMPLATE_SCHEMA"
    SYSTEM_INJECTED = "SYSTEM_INJECTED"
    SYSTEM_DEFAULT = "SYSTEM_DEFAULT"
    DEFINITION = "DEFINITION"
    SIGNAL = "SIGNAL"
    TIME_TRIGGER = "TIME_TRIGGER"
    OUTPUT_PARAMETER = "OUTPUT_PARAMETER"
    LAUNCH = "LAUNCH"
    RESTART = "RESTART"
    SUBWORKFLOW = "SUBWORKFLOW"
    TEMPLATE = "TEMPLATE"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    WORKFLOW_PARAMETER = "WORKFLOW_PARAMETER"


class InternalMode(StrEnum):
    """What the system demands of a parameter."""

    REQUIRED = "REQUIRED"
    OPTIONAL = "OPTIONAL"
    PROVIDED = "PROVIDED"
    RESERVED = "RESERVED"
