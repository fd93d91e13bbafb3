"""Everything in a definition that is written in SEL is compiled when it is pushed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kapelle.processors.definitions.problems import Report, at, shown
from kapelle.processors.params import (
    BadDefinition,
    Definition,
    EvaluationFailed,
    ParamError,
    ParamType,
    check_validator,
)
from kapelle.processors.sel import Limits, Program, Sel, SelError

# What a push may spend on all of its expressions together, and on one of them at most and at least.
VISITS: Final = 10_000_000
VISITS_OF_ONE_MAX: Final = 2_000_000
VISITS_OF_ONE_MIN: Final = 10_000


class Texts:
    """Compiles, and reports what cannot be compiled."""

    def __init__(self, report: Report, *, count: int) -> None:
        self.report = report
        share = VISITS // max(count, 1)
        self.sel = Sel(Limits(visits=min(max(share, VISITS_OF_ONE_MIN), VISITS_OF_ONE_MAX)))

    def expression(self, text: str, path: str) -> Program | None:
        """An expression of any type."""
        try:
            program = self.sel.program(text)
        except SelError as error:
            self._report(text, path, error)
            return None
        for problem in program.problems:
            self._report(text, path, problem)
        return None if program.problems else program

    def compiles(self, name: str, definition: Definition) -> bool:
        """Whether all expressions and validators of a parameter can be compiled."""
        try:
            check_validator(name, definition, self.sel)
            if definition.expression is not None:
                return not self.sel.program(definition.expression).problems
        except (SelError, ParamError):
            return False
        inner = definition.value if definition.type is ParamType.MAP else {}
        return all(self.compiles(key, one) for key, one in inner.items())

    def condition(self, text: str, path: str) -> None:
        """An expression that is true or false. What uses no names can be told at once."""
        program = self.expression(text, path)
        if program is None or program.names:
            return
        try:
            result = program.evaluate()
        except SelError as error:
            self._report(text, path, error)
            return
        if result.type != "BOOLEAN":
            self.report.note(path, f"{shown(text)}, which is a {result.type}", "an expression that is true or false")

    def params(self, params: Mapping[str, Definition], path: str) -> None:
        """The expressions and validators of parameters, and of those inside them."""
        for name, definition in params.items():
            here = at(path, name)
            if definition.expression is not None:
                self.expression(definition.expression, at(here, "expression"))
            elif definition.type is ParamType.MAP and isinstance(definition.value, dict):
                self.params(definition.value, at(here, "value"))
            try:
                check_validator(name, definition, self.sel)
            except BadDefinition as error:
                self.report.add(at(here, "validator"), definition.validator, f"a validator ({error.reason})")
            except EvaluationFailed as error:
                self._report(definition.validator or "", at(here, "validator"), error.error)

    def _report(self, text: str, path: str, error: SelError) -> None:
        self.report.note(path, f"{shown(text)} ({error})", "an expression in SEL")
