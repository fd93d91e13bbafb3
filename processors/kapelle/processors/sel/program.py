"""The way in: compile a text once, evaluate it often.

    sel = Sel()
    sel.evaluate("x > 3 && flag", {"x": 5, "flag": True})     # Result(type='BOOLEAN', value=True)
    sel.names("x > 3 && flag")                                # ('x', 'flag')

A `Sel` keeps its compiled programs by their text. Evaluations share nothing but that.
"""

from collections.abc import Mapping

import msgspec

from kapelle.processors.sel import tree
from kapelle.processors.sel.compiler import Compiler
from kapelle.processors.sel.errors import LimitExceeded, SelError
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import DEFAULT_LIMITS, NOWHERE, Frame, Host, Limits, Value
from kapelle.processors.sel.parser import parse
from kapelle.processors.sel.scope import scope_of
from kapelle.processors.sel.statements import RETURN, Statement, StatementCompiler
from kapelle.processors.sel.values import KIND_NAMES, SCALARS, VOID, result_of
from kapelle.processors.sel.variables import UNSET

PROGRAMS_MAX = 4096
NO_INPUTS: Mapping[str, Value] = {}
NO_SLOTS: list[Value] = []


class Result(msgspec.Struct, frozen=True, gc=False):
    """The type name and the value of an evaluation."""

    type: str
    value: Value


class Program:
    """A compiled text. `names` are its inputs, `keys` the parameters that it asks `params` for by a constant name."""

    __slots__ = ("_body", "_cost", "_expression", "_limits", "_slots", "keys", "names", "problems", "text")

    def __init__(self, text: str, limits: Limits) -> None:
        root = parse(text, limits)
        try:
            scope = scope_of(root)
            compiler = Compiler(scope)
            self._expression: Expression | None = None
            self._body: Statement | None = None
            self._compile(root, compiler)
        except SelError as error:
            raise error.located(text) from None
        self.text = text
        self.names = tuple(scope.inputs)
        self.keys = tuple(dict.fromkeys(scope.keys))
        self.problems = tuple(problem.located(text) for problem in compiler.problems)
        self._slots = len(scope.slots)
        self._limits = limits

    def _compile(self, root: tree.Block, compiler: Compiler) -> None:
        """Most programs are one expression: those run without the statements' machinery."""
        only = root.body[0] if len(root.body) == 1 else None
        if isinstance(only, tree.Evaluate | tree.Return):
            self._expression = compiler.expression(only.value)
            self._cost = compiler.cost
        else:
            self._body = StatementCompiler(compiler).statement(root)
            self._cost = 0

    def evaluate(self, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE) -> Result:
        """The result for these inputs. What is not a parameter's value is an `InvalidResult`."""
        limits = self._limits
        slots = [UNSET] * self._slots if self._slots else NO_SLOTS
        frame = Frame(inputs, host, limits, limits.visits - self._cost, limits.memory_bytes, slots)
        try:
            value = self._run(frame) if self._expression is None else self._expression(frame)
            cls = value.__class__
            if cls not in SCALARS:
                value = result_of(frame, value)
            if frame.visits < 0:
                raise LimitExceeded("visits", limits.visits)
        except SelError as error:
            raise error.located(self.text) from None
        except RecursionError:
            # The tree's depth is bounded; this happens only to a caller that is itself deep in recursion.
            raise LimitExceeded("stack_depth", limits.stack_depth).located(self.text) from None
        return Result(KIND_NAMES[cls], value)

    def _run(self, frame: Frame) -> Value:
        body = self._body
        if body is None:
            return VOID
        signal = body(frame)
        return frame.result if signal in (None, RETURN) else VOID


class Sel:
    """Compiled programs under one set of limits."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._programs: dict[str, Program] = {}

    def program(self, text: str) -> Program:
        """The compiled text, from the cache if it was compiled before."""
        found = self._programs.get(text)
        if found is None:
            found = Program(text, self.limits)
            while len(self._programs) >= PROGRAMS_MAX:
                del self._programs[next(iter(self._programs))]
            self._programs[text] = found
        return found

    def evaluate(self, text: str, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE) -> Result:
        """Compile if need be, and evaluate."""
        return self.program(text).evaluate(inputs, host)

    def names(self, text: str) -> tuple[str, ...]:
        """The inputs that the text uses, in the order of their first use."""
        return self.program(text).names
