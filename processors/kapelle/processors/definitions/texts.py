"""Everything in a definition that is written in SEL is compiled when it is pushed, each text once, within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kapelle.processors.definitions.problems import Report, at, shown
from kapelle.processors.params import (
    SEL_LIMITS,
    BadDefinition,
    Definition,
    EvaluationFailed,
    ParamError,
    ParamType,
    check_validator,
)
from kapelle.processors.sel import Budget, LimitExceeded, Program, Sel, SelError
from kapelle.processors.sel.program import price_of

# What a push may spend on compiling all of its texts. Its dry run has the budget of a start.
COMPILING_VISITS_MAX: Final = 400_000


class PushSel(Sel):
    """The interpreter for one push. It compiles each text once, also one that cannot be compiled."""

    def __init__(self) -> None:
        super().__init__(SEL_LIMITS)
        self.budget = Budget(COMPILING_VISITS_MAX, SEL_LIMITS.memory_bytes)
        self._known: dict[str, Program | SelError] = {}

    def program(self, text: str, budget: Budget | None = None) -> Program:
        """The compiled text. Compiling it is charged to the push, and to the budget as at a start."""
        price = price_of(text[: self.limits.expression_chars])
        if text not in self._known:
            self._known[text] = self._compiled(text, price)
        if budget is not None:
            budget.compile(text, price)
        program = self._known[text]
        if isinstance(program, SelError):
            raise program.with_traceback(None)
        return program

    def _compiled(self, text: str, price: int) -> Program | SelError:
        try:
            self.budget.work(price)
            return Program(text, self.limits)
        except SelError as error:
            return error


class Texts:
    """Compiles, and reports what cannot be compiled."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.sel = PushSel()
        self._is_too_much = False

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
        return all(self.compiles(key, definition) for key, definition in inner.items())

    def condition(self, text: str, path: str) -> None:
        """An expression that is true or false. What uses no names can be told at once."""
        program = self.expression(text, path)
        if program is None or program.names:
            return
        try:
            result = program.evaluate(budget=self.sel.budget)
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
        if isinstance(error, LimitExceeded) and error.limit == "decision_visits":
            if not self._is_too_much:  # all that follows would be told the same
                expected = f"expressions that take at most {COMPILING_VISITS_MAX:,} visits to check, all together"
                self.report.note(path, "expressions that take more", expected)
            self._is_too_much = True
            return
        self.report.note(path, f"{shown(text)} ({error})", "an expression in SEL")
