"""The way in: compile a text once, evaluate it often.

    sel = Sel()
    sel.evaluate("x > 3 && flag", {"x": 5, "flag": True})     # Result(type='BOOLEAN', value=True)
    sel.names("x > 3 && flag")                                # ('x', 'flag')

A `Sel` keeps its compiled programs by their text. Evaluations share nothing but that.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from kapelle.processors.sel import tree
from kapelle.processors.sel.compiler import Compiler, folded
from kapelle.processors.sel.errors import LimitExceeded, SelError
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import DEFAULT_LIMITS, NOWHERE, Frame, Host, Limits, Value
from kapelle.processors.sel.parser import parse
from kapelle.processors.sel.scope import scope_of
from kapelle.processors.sel.statements import RETURN, StatementCompiler, as_expression
from kapelle.processors.sel.values import KIND_NAMES, SCALARS, VOID, result_of
from kapelle.processors.sel.variables import UNSET

# A compiled program takes up to 350 bytes for each character of its text: the cache stays below 100 MB.
CACHE_CHARS_MAX = 256_000
NO_INPUTS: Mapping[str, Value] = {}


class Result(msgspec.Struct, frozen=True, gc=False):
    """The type name and the value of an evaluation."""

    type: str
    value: Value


class Evaluate(Protocol):
    """Evaluates a program: the inputs by name, and what else it may learn from outside."""

    def __call__(self, inputs: Mapping[str, Value] = ..., host: Host = ..., /) -> Value: ...


class Program:
    """A compiled text.

    `names` are its inputs, `keys` the parameters that it asks `params` for by a constant name, `problems` the errors
    that can be told without running it. `value` evaluates: it gives the value alone, for who needs no type name.
    """

    __slots__ = ("keys", "names", "problems", "text", "value")

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
        self.names = tuple(scope.inputs)
        self.keys = tuple(scope.keys)
        self.problems = tuple(problem.located(text) for problem in compiler.problems)
        constant = _constant(root)
        if compiler.cost > limits.visits:
            run = _refusing("visits")
        elif compiler.memory > limits.memory_bytes:
            run = _refusing("memory_bytes")
        elif constant is not None:
            self.value: Evaluate = lambda _=NO_INPUTS, __=NOWHERE: constant
            return
        self.value = _evaluating(
            text, run, limits, slots_count=len(scope.slots), spent=(compiler.cost, compiler.memory)
        )

    def evaluate(self, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE) -> Result:
        """The result for these inputs. What is not a parameter's value is an `InvalidResult`."""
        value = self.value(inputs, host)
        return Result(KIND_NAMES[value.__class__], value)


def _evaluating(text: str, run: Expression, limits: Limits, *, slots_count: int, spent: tuple[int, int]) -> Evaluate:
    """The way into a program. It is a closure, not a method, because it is called more often than anything else."""
    visits, memory = limits.visits - spent[0], limits.memory_bytes - spent[1]
    unset, scalars = [UNSET] * slots_count, SCALARS

    def value(inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE, /) -> Value:
        frame = Frame(inputs, host, limits, visits, memory, unset and unset.copy())
        try:
            found = run(frame)
            return found if found.__class__ in scalars else result_of(frame, found)
        except SelError as error:
            raise error.located(text) from None
        except RecursionError:
            # The tree's depth is bounded; this happens only to a caller that is itself deep in recursion.
            raise LimitExceeded("stack_depth", limits.stack_depth).located(text) from None

    return value


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

    def program(self, text: str) -> Program:
        """The compiled text, from the cache if it was compiled before."""
        found = self._programs.get(text)
        if found is None:
            found = Program(text, self.limits)
            self._chars += len(text) + 1
            while self._chars > CACHE_CHARS_MAX and self._programs:
                oldest = next(iter(self._programs))
                del self._programs[oldest]
                self._chars -= len(oldest) + 1
            self._programs[text] = found
        return found

    def evaluate(self, text: str, inputs: Mapping[str, Value] = NO_INPUTS, host: Host = NOWHERE) -> Result:
        """Compile if need be, and evaluate."""
        return self.program(text).evaluate(inputs, host)

    def names(self, text: str) -> tuple[str, ...]:
        """The inputs that the text uses, in the order of their first use."""
        return self.program(text).names
