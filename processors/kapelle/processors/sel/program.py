"""The way in: compile a text once, evaluate it often.

    sel = Sel()
    sel.evaluate("x > 3 && flag", {"x": 5, "flag": True})     # Result(type='BOOLEAN', value=True)
    sel.names("x > 3 && flag")                                # ('x', 'flag')

A `Sel` keeps its compiled programs by their text. Evaluations share nothing but that.
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from kapelle.processors.sel import tree
from kapelle.processors.sel.compiler import Compiler, folded
from kapelle.processors.sel.errors import LimitExceeded, SelError
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import DEFAULT_LIMITS, NOWHERE, Budget, Frame, Host, Limits, Value
from kapelle.processors.sel.parser import parse
from kapelle.processors.sel.scope import scope_of
from kapelle.processors.sel.statements import RETURN, StatementCompiler, as_expression
from kapelle.processors.sel.values import KIND_NAMES, SCALARS, VOID, result_of
from kapelle.processors.sel.variables import UNSET

# A compiled program takes up to 350 bytes for each character of its text: the cache stays below 100 MB.
CACHE_CHARS_MAX = 256_000
NO_INPUTS: Mapping[str, Value] = {}
# Compiling takes 3 to 11 microseconds for each word or sign, and some more for each text.
VISITS_PER_TEXT: Final = 100
VISITS_PER_WORD: Final = 30
_WORD: Final = re.compile(r"\w+|[^\w\s]")


class Result(msgspec.Struct, frozen=True, gc=False):
    """The type name and the value of an evaluation."""

    type: str
    value: Value


class Evaluate(Protocol):
    """Evaluates a program: the inputs by name, and what else it may learn from outside."""

    def __call__(
        self, inputs: Mapping[str, Value] = ..., host: Host = ..., budget: Budget | None = ..., /
    ) -> Value: ...


class Program:
    """A compiled text.

    `names` are its inputs, `keys` the parameters that it asks `params` for by a constant name, `problems` the errors
    that can be told without running it. `value` evaluates: it gives the value alone, for callers that need no type
    name. `price` is what compiling it takes, in visits.
    """

    __slots__ = ("keys", "names", "price", "problems", "text", "value")

    def __init__(self, text: str, limits: Limits) -> None:
        root = parse(text, limits)
        try:
            scope = scope_of(root)
            compiler = Compiler(scope, once=as_expression(root) is not None)
            run = _compiled(root, compiler)
        except SelError as error:
            raise error.located(text) from None
        except RecursionError:
            # As below: the tree is bounded, the caller's own stack may not be.
            raise LimitExceeded("stack_depth", limits.stack_depth).located(text) from None
        self.text = text
        self.price = price_of(text)
        self.names = tuple(scope.inputs)
        self.keys = tuple(scope.keys)
        self.problems = tuple(problem.located(text) for problem in compiler.problems)
        constant = _constant(root)
        if compiler.cost > limits.visits:
            run = _refusing("visits")
        elif compiler.memory > limits.memory_bytes:
            run = _refusing("memory_bytes")
        elif constant is not None:
            self.value: Evaluate = lambda _=NO_INPUTS, __=NOWHERE, ___=None: constant
            return
        self.value = _evaluating(
            text, run, limits, slots_count=len(scope.slots), spent=(compiler.cost, compiler.memory)
        )

    def evaluate(
        self, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE, *, budget: Budget | None = None
    ) -> Result:
        """The result for these inputs. What is not a parameter's value is an `InvalidResult`."""
        value = self.value(inputs, host, budget)
        return Result(KIND_NAMES[value.__class__], value)


def _evaluating(text: str, run: Expression, limits: Limits, *, slots_count: int, spent: tuple[int, int]) -> Evaluate:
    """The way into a program. It is a closure, not a method, because it is called more often than anything else."""
    visits, memory = limits.visits - spent[0], limits.memory_bytes - spent[1]
    unset, scalars = [UNSET] * slots_count, SCALARS

    def value(inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE, budget: Budget | None = None, /) -> Value:
        if budget is not None:
            return within(inputs, host, budget)
        frame = Frame(inputs, host, limits, visits, memory, unset and unset.copy())
        try:
            result = run(frame)
            return result if result.__class__ in scalars else result_of(frame, result)
        except SelError as error:
            raise error.located(text) from None
        except RecursionError:
            # The tree's depth is bounded; this happens only to a caller that is itself deep in recursion.
            raise LimitExceeded("stack_depth", limits.stack_depth).located(text) from None

    def within(inputs: Mapping[str, Value], host: Host, budget: Budget) -> Value:
        """The same, with no more than the decision has left."""
        visits_left = min(limits.visits, budget.visits_max - budget.spent)
        bytes_left = min(limits.memory_bytes, budget.bytes_max - budget.made_bytes)
        visits_free, bytes_free = visits_left - spent[0], bytes_left - spent[1]
        frame = Frame(inputs, host, limits, visits_free, bytes_free, unset and unset.copy())
        try:
            if visits_free < 0 or bytes_free < 0:
                frame.work(0)
                frame.spend(0)
            result = run(frame)
            return result if result.__class__ in scalars else result_of(frame, result)
        except SelError as error:
            raise _of_decision(error, limits, budget, (visits_left, bytes_left)).located(text) from None
        except RecursionError:
            raise LimitExceeded("stack_depth", limits.stack_depth).located(text) from None
        finally:
            budget.spent += visits_left - frame.visits
            budget.made_bytes += bytes_left - frame.memory

    return value


def _of_decision(error: SelError, limits: Limits, budget: Budget, left: tuple[int, int]) -> SelError:
    """The error of an evaluation; if only the decision had too little left, the error says so."""
    if not isinstance(error, LimitExceeded):
        return error
    visits_left, bytes_left = left
    if error.limit == "visits" and visits_left < limits.visits:
        return LimitExceeded("decision_visits", budget.visits_max, span=error.span)
    if error.limit == "memory_bytes" and bytes_left < limits.memory_bytes:
        return LimitExceeded("decision_bytes", budget.bytes_max, span=error.span)
    return error


def price_of(text: str) -> int:
    """What compiling a text takes, in visits. It is counted from the text alone, so that a cache changes nothing."""
    return VISITS_PER_TEXT + VISITS_PER_WORD * len(_WORD.findall(text))


def _refusing(limit: str) -> Expression:
    """What a program runs whose one expression needs more than the limit allows, whatever its inputs."""

    def run(frame: Frame) -> Value:
        raise LimitExceeded(limit, getattr(frame.limits, limit))

    return run


def _constant(root: tree.Block) -> Value:
    """The value of a program that is one literal or one operator on two; None if it must be evaluated."""
    only = as_expression(root)
    if isinstance(only, tree.Chain):
        return folded(only)
    return only.value if isinstance(only, tree.Literal) else None


def _compiled(root: tree.Block, compiler: Compiler) -> Expression:
    """Most programs are one expression: those run without the statements' machinery."""
    only = as_expression(root)
    if only is not None:
        return compiler.expression(only)
    body = StatementCompiler(compiler).statement(root)

    def run(f: Frame) -> Value:
        signal = body(f)
        return f.result if signal is None or signal is RETURN else VOID

    return run


class Sel:
    """Compiled programs under one set of limits."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._programs: dict[str, Program] = {}
        self._chars = 0

    def program(self, text: str, budget: Budget | None = None) -> Program:
        """The compiled text, from the cache if it was compiled before.

        A budget is charged for compiling in both cases, or a decision would depend on the decisions before it.
        """
        program = self._programs.get(text)
        if budget is not None:
            budget.compile(
                text, program.price if program is not None else price_of(text[: self.limits.expression_chars])
            )
        if program is None:
            program = Program(text, self.limits)
            self._chars += len(text) + 1
            while self._chars > CACHE_CHARS_MAX and self._programs:
                oldest = next(iter(self._programs))
                del self._programs[oldest]
                self._chars -= len(oldest) + 1
            self._programs[text] = program
        return program

    def evaluate(
        self, text: str, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE, *, budget: Budget | None = None
    ) -> Result:
        """Compile if need be, and evaluate."""
        return self.program(text).evaluate(inputs, host, budget=budget)

    def names(self, text: str) -> tuple[str, ...]:
        """The inputs that the text uses, in the order of their first use."""
        return self.program(text).names
