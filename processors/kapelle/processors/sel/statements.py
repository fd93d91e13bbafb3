"""From statements to closures. A statement answers what happens next: go on (None), BREAK, CONTINUE or RETURN.

Each statement spends the visits of its own expressions when it runs. The value of the last one is in `frame.result`.
"""

from collections.abc import Callable

from kapelle.processors.sel import tree
from kapelle.processors.sel.compiler import Compiler
from kapelle.processors.sel.errors import LimitExceeded, SelError, Span, Thrown, TypeMismatch
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import Frame
from kapelle.processors.sel.tree import Node
from kapelle.processors.sel.types import type_named
from kapelle.processors.sel.values import VOID, kind_of

BREAK = "break"
CONTINUE = "continue"
RETURN = "return"
Statement = Callable[[Frame], str | None]


class StatementCompiler:
    """Compiles the statements of one program."""

    def __init__(self, expressions: Compiler) -> None:
        self._of = expressions
        self._compilers: dict[type[Node], Callable[..., Statement]] = {
            tree.Block: self._block,
            tree.If: self._if,
            tree.Loop: self._loop,
            tree.Jump: self._jump,
            tree.Return: self._return,
            tree.Throw: self._throw,
            tree.Declare: self._declare,
        }

    def statement(self, node: Node) -> Statement:
        """The closure of a statement, which counts what it spends."""
        before = self._of.cost
        if isinstance(node, tree.Evaluate):
            value = self._of.expression(node.value)
            made = _evaluating(value, self._of.cost - before + 1, node.span)
        else:
            run = self._compilers[type(node)](node)
            made = _counting(run, self._of.cost - before + 1, node.span)
        # What this statement spends itself is not spent again by the one around it.
        self._of.cost = before
        return made

    def _block(self, node: tree.Block) -> Statement:
        body = [self.statement(child) for child in node.body]

        def run(f: Frame) -> str | None:
            f.result = VOID
            for statement in body:
                signal = statement(f)
                if signal is not None:
                    return signal
            return None

        return run

    def _if(self, node: tree.If) -> Statement:
        arms = [(self._of.condition(condition), self.statement(then)) for condition, then in node.arms]
        otherwise = self.statement(node.otherwise) if node.otherwise is not None else None

        def run(f: Frame) -> str | None:
            for condition, then in arms:
                if condition(f):
                    signal = then(f)
                    break
            else:
                signal = otherwise(f) if otherwise is not None else None
            if signal is not RETURN:
                f.result = VOID
            return signal

        return run

    def _loop(self, node: tree.Loop) -> Statement:
        init = self._part(node.init)
        before = self._of.cost
        condition = self._of.condition(node.condition) if node.condition is not None else None
        update = self._of.expression(node.update) if node.update is not None else None
        cost = self._of.cost - before + 1
        body = self.statement(node.body)
        span = node.span

        def run(f: Frame) -> str | None:
            if init is not None:
                init(f)
            left = f.limits.loop_iterations
            while condition is None or condition(f):
                left -= 1
                if left < 0:
                    raise LimitExceeded("loop_iterations", f.limits.loop_iterations, span=span)
                f.visits -= cost
                if f.visits < 0:
                    raise LimitExceeded("visits", f.limits.visits, span=span)
                signal = body(f)
                if signal is RETURN:
                    return RETURN
                if signal is BREAK:
                    break
                if update is not None:
                    update(f)
            f.result = VOID
            return None

        return run

    def _part(self, node: Node | None) -> Statement | None:
        """The initialiser of a `for`: a declaration or an expression."""
        if node is None:
            return None
        if isinstance(node, tree.Declare):
            return self.statement(node)
        return self.statement(tree.Evaluate(node.span, node.depth, node))

    def _jump(self, node: tree.Jump) -> Statement:
        signal = BREAK if node.word == "break" else CONTINUE
        return lambda _: signal

    def _return(self, node: tree.Return) -> Statement:
        value = self._of.expression(node.value)

        def run(f: Frame) -> str:
            f.result = value(f)
            return RETURN

        return run

    def _throw(self, node: tree.Throw) -> Statement:
        value, span = self._of.expression(node.value), node.span

        def run(f: Frame) -> str | None:
            message = value(f)
            if message.__class__ is not str:
                raise TypeMismatch(f"Expected STRING after throw, but found {kind_of(message)}", span=span)
            raise Thrown(message[:16_384], span=span)

        return run

    def _declare(self, node: tree.Declare) -> Statement:
        try:
            kind = type_named(node.type_name, is_array=node.is_array)
        except SelError as error:
            raise error.placed(node.span) from None
        steps = [self._declarator(kind, name, value) for name, value in node.names]

        def run(f: Frame) -> None:
            for step in steps:
                step(f)
            f.result = VOID

        return run

    def _declarator(self, kind: type, name: str, value: Node | None) -> Callable[[Frame], None]:
        variable = self._of.variables[name]
        if value is None:
            return lambda f: variable.declare_default(f, kind)
        given: Expression = self._of.expression(value)
        at = value.span

        def run(f: Frame) -> None:
            try:
                variable.declare(f, kind, given(f))
            except SelError as error:
                raise error.placed(at) from None

        return run


def _counting(run: Statement, cost: int, span: Span) -> Statement:
    def counted(f: Frame) -> str | None:
        f.visits -= cost
        if f.visits < 0:
            raise LimitExceeded("visits", f.limits.visits, span=span)
        return run(f)

    return counted


def _evaluating(value: Expression, cost: int, span: Span) -> Statement:
    def counted(f: Frame) -> None:
        f.visits -= cost
        if f.visits < 0:
            raise LimitExceeded("visits", f.limits.visits, span=span)
        f.result = value(f)

    return counted


def as_expression(program: tree.Block) -> Node | None:
    """The one expression that a program is, if it is one: `e`, `return e`, or `if (a) return b; return c`."""
    if not program.body:
        return None
    *before, last = program.body
    if not isinstance(last, tree.Evaluate | tree.Return):
        return None
    if not before:
        return last.value
    first = before[0]
    if len(before) != 1 or not isinstance(first, tree.If) or first.otherwise is not None:
        return None
    arms = [(condition, _returned(then)) for condition, then in first.arms]
    returned = [(condition, value) for condition, value in arms if value is not None]
    if len(returned) != len(arms):
        return None
    return tree.Choose(first.span, max(first.depth, last.depth), returned, last.value)


def _returned(node: Node) -> Node | None:
    """The value of `return e;`, with or without braces."""
    if isinstance(node, tree.Block) and len(node.body) == 1:
        node = node.body[0]
    return node.value if isinstance(node, tree.Return) else None
