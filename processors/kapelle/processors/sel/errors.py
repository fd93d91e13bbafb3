"""What can go wrong with an expression.

    SelError                     the author of the expression must act
    ├── ParseError               the text is not SEL
    ├── Unsupported              a class, method or field that is not in the language
    ├── TypeMismatch             an operator, argument or assignment got a value of the wrong type
    ├── BadValue                 the type is right and the value is not: a divisor of zero, an index, a date
    ├── Thrown                   the expression said `throw`
    ├── InvalidResult            the result is NULL, VOID or a type that no parameter can hold
    ├── ExtensionFailed          a `params.` function could not answer
    └── LimitExceeded            a budget ran out; `limit` says which, `allowed` how much there was

Every error knows where: `line` and `column` count from 1, `fragment` is the offending text, `hint` says what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches

Span = tuple[int, int]


class SelError(Exception):
    """Anything wrong with an expression. Raised without a place by the part that finds it, placed by its caller."""

    def __init__(self, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.span = span
        self.source = ""

    @property
    def kind(self) -> str:
        """The name of the error's type: the `error` field of JSON answers."""
        return type(self).__name__

    def placed(self, span: Span) -> "SelError":
        """Say where it happened, unless an inner part has said so already."""
        if self.span is None:
            self.span = span
        return self

    def located(self, source: str) -> "SelError":
        """Say in which text it happened, so that line, column and fragment can be told."""
        if not self.source:
            self.source = source
        return self

    @property
    def line(self) -> int:
        """The line of the first offending character, from 1."""
        return self.source.count("\n", 0, self._start) + 1

    @property
    def column(self) -> int:
        """The column of the first offending character, from 1."""
        return self._start - (self.source.rfind("\n", 0, self._start) + 1) + 1

    @property
    def fragment(self) -> str:
        """The offending text, on one line and no longer than a line should be."""
        if self.span is None:
            return ""
        text = " ".join(self.source[self._start : self.span[1]].split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    @property
    def _start(self) -> int:
        return min(self.span[0] if self.span else 0, len(self.source))

    def __str__(self) -> str:
        where = f" at line {self.line}, column {self.column}" if self.source else ""
        fragment = f": {self.fragment}" if self.fragment else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.message}{where}{fragment}{hint}"

    def rendered(self) -> str:
        """The message, the line, and a caret under the offending text."""
        lines = self.source.splitlines() or [""]
        line = lines[self.line - 1] if self.line <= len(lines) else ""
        end = self.span[1] if self.span else self._start
        width = max(1, min(end - self._start, len(line) - self.column + 1))
        # A long line is cut around the place, or the caret would be out of sight.
        first = max(0, self.column - 61)
        shown = line[first : first + 120].replace("\t", " ")
        caret = " " * (self.column - 1 - first) + "^" * min(width, 120)
        parts = [
            f"{self.kind}: {self.message}",
            f"  line {self.line}, column {self.column}",
            f"  {shown}",
            f"  {caret}",
        ]
        return "\n".join([*parts, f"  hint: {self.hint}"] if self.hint else parts)


class ParseError(SelError):
    """The text is not SEL."""


class Unsupported(SelError):
    """A class, method or field that is not in the language."""


class TypeMismatch(SelError):
    """A value of the wrong type."""


class BadValue(SelError):
    """A value of the right type that cannot be used here."""


class Thrown(SelError):
    """The expression said `throw`; the message is what it threw."""


class InvalidResult(SelError):
    """The value of the whole expression cannot be the value of a parameter."""

    def __init__(self, message: str, *, type_name: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.type_name = type_name


class ExtensionFailed(SelError):
    """A function of `params` has no answer: the step, signal or field does not exist, or none was connected."""


class LimitExceeded(SelError):
    """A budget ran out. `limit` is the field of `Limits`, or of the `Budget` of a decision; `allowed` is its value."""

    def __init__(self, limit: str, allowed: int, *, span: Span | None = None) -> None:
        super().__init__(f"Expected {LIMITS_IN_WORDS[limit]} to stay within {allowed:,}, but it needs more", span=span)
        self.limit = limit
        self.allowed = allowed


LIMITS_IN_WORDS = {
    "expression_chars": "the length of the expression",
    "stack_depth": "the nesting depth",
    "loop_iterations": "the iterations of one loop",
    "array_length": "the length of an array",
    "visits": "the work of the evaluation (tree visits)",
    "memory_bytes": "the memory of the evaluation (bytes)",
    "decision_visits": "the work of all evaluations of this decision (tree visits)",
    "decision_bytes": "the memory of all evaluations of this decision (bytes)",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the known name that is nearest, or nothing."""
    names = list(known)
    nearest = get_close_matches(name[:64], names, n=1, cutoff=0.6)
    if not nearest:
        lower = {n.lower(): n for n in names}
        nearest = (
            [lower[name.lower()]]
            if name.lower() in lower
            else [n for n in names if n.startswith(name) and len(name) > 2]
        )
    return f"did you mean '{nearest[0]}'?" if nearest else ""
