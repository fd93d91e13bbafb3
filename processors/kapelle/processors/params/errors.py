"""What can be wrong with parameters. The author of the workflow, or who starts it, must act.

ParamError
├── BadDefinition        a definition that cannot mean anything; found when it is read
├── MergeRefused         a later layer may not do this to an earlier one
├── MissingParam         a required parameter has neither value nor expression when all layers are merged
├── UnknownReference     a parameter refers to one that does not exist; both are named
├── CyclicReference      parameters refer to each other in a ring; `cycle` names it
├── NotConvertible       a value does not fit the parameter's type
├── EvaluationFailed     the expression failed; the cause is the `SelError`
│   └── BudgetExceeded   what is evaluated together takes more than one decision may spend
├── ValidatorFailed      the value is not what the validator demands
├── ParamsTooLarge       all values together are larger than a step or an instance may carry
├── TextTooLong          a text that refers to parameters is too long once they are filled in
└── BadNumber            a duration or a count cannot be read
"""

from kapelle.processors.sel import LimitExceeded, SelError

OF_DECISION = {"decision_visits": "visits", "decision_bytes": "bytes"}


class ParamError(Exception):
    """Anything wrong with parameters."""


class BadDefinition(ParamError):
    """A definition that cannot mean anything."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"Expected a definition of parameter {name!r}, but {reason}")
        self.name = name
        self.reason = reason


class MergeRefused(ParamError):
    """A layer may not change a parameter in this way."""

    def __init__(self, name: str, layer: str, reason: str) -> None:
        super().__init__(f"Expected a change of parameter {name!r} that {layer!r} may make, but {reason}")
        self.name = name
        self.layer = layer
        self.reason = reason


class MissingParam(ParamError):
    """Nobody gave a required parameter."""

    def __init__(self, name: str, type_name: str) -> None:
        super().__init__(f"Expected a value for {name!r}: it is a required parameter of type {type_name}, but has none")
        self.name = name


class UnknownReference(ParamError):
    """A parameter refers to one that does not exist."""

    def __init__(self, name: str, reference: str, where: str) -> None:
        super().__init__(f"Expected {where} to know {reference!r}, to which parameter {name!r} refers, but it does not")
        self.name = name
        self.reference = reference


class CyclicReference(ParamError):
    """Parameters refer to each other in a ring."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        super().__init__(f"Expected parameters without a cycle, but found {' -> '.join((*cycle, cycle[0]))}")
        self.cycle = cycle


class NotConvertible(ParamError):
    """A value does not fit the type."""

    def __init__(self, name: str, type_name: str, found: str) -> None:
        super().__init__(f"Expected {type_name} for parameter {name!r}, but found {found}")
        self.name = name
        self.type_name = type_name
        self.found = found


class EvaluationFailed(ParamError):
    """The expression of a parameter failed."""

    def __init__(self, name: str, error: SelError) -> None:
        super().__init__(f"Expected a value for parameter {name!r}, but its expression failed: {error}")
        self.name = name
        self.error = error


class BudgetExceeded(EvaluationFailed):
    """What is evaluated together takes more than one decision may spend."""

    def __init__(self, name: str, error: LimitExceeded) -> None:
        super().__init__(name, error)
        unit = OF_DECISION.get(error.limit, error.limit)
        where = f": its expression failed at line {error.line}, column {error.column}" if error.source else ""
        expected = f"the parameters that are evaluated together to take at most {error.allowed:,} {unit}"
        self.args = (f"Expected {expected}, but {name!r} needs more{where}",)


def failed_of(name: str, error: SelError) -> EvaluationFailed:
    """What the error of an expression means for a parameter."""
    if isinstance(error, LimitExceeded) and error.limit in OF_DECISION:
        return BudgetExceeded(name, error)
    return EvaluationFailed(name, error)


class ValidatorFailed(ParamError):
    """The value of a parameter is not what its validator demands."""

    def __init__(self, name: str, validator: str, shown: str) -> None:
        super().__init__(f"Expected parameter {name!r} to satisfy {validator!r}, but its value is {shown[:200]}")
        self.name = name
        self.validator = validator


class ParamsTooLarge(ParamError):
    """All values together are too large."""

    def __init__(self, where: str, name: str, chars: int, chars_max: int) -> None:
        super().__init__(
            f"Expected the parameters of {where} within {chars_max:,} characters, "
            f"but with {name!r} they have {chars:,} or more"
        )
        self.name = name
        self.chars = chars
        self.chars_max = chars_max


class TextTooLong(ParamError):
    """A text is too long once the parameters in it are filled in."""

    def __init__(self, chars_max: int) -> None:
        super().__init__(f"Expected a text of at most {chars_max:,} characters, but its parameters make it longer")
        self.chars_max = chars_max


class BadNumber(ParamError):
    """A duration or a count cannot be read."""

    def __init__(self, what: str, found: object) -> None:
        super().__init__(f"Expected {what}, but found {str(found)[:100]!r}")
        self.found = found
