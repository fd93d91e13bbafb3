"""From tree to closures: each node of an expression becomes a Python function of the frame, made once, called often.

Chains are loops, so the Python stack grows only with the real nesting of the expression, which the tree has bounded.
The number of nodes is counted on the way (`cost`); `statements` makes them be spent.
"""

from collections.abc import Callable
from typing import TypeGuard

from kapelle.processors.sel import fast, operators, tree
from kapelle.processors.sel.errors import BadValue, ParseError, SelError, Span, TypeMismatch, Unsupported, did_you_mean
from kapelle.processors.sel.fast import Expression
from kapelle.processors.sel.limits import DEFAULT_LIMITS, NOWHERE, Frame, Value
from kapelle.processors.sel.members.calls import method_of, static_call, static_field, suffix_call, suffix_field
from kapelle.processors.sel.members.member import construct
from kapelle.processors.sel.members.params import PARAMS
from kapelle.processors.sel.members.registry import NEW, STATIC_NAMES
from kapelle.processors.sel.scope import Scope
from kapelle.processors.sel.tree import Node
from kapelle.processors.sel.types import array_of, type_named, unknown_type
from kapelle.processors.sel.values import LONG_MAX, Array, kind_of
from kapelle.processors.sel.variables import Variable, input_value

Suffix = Callable[[Frame, Value], Value]


class Compiler:
    """Compiles the expressions of one program. `problems` are errors that a check can tell without running.

    In a program without statements nothing runs twice (`once`): what short strings take can be counted in advance, in
    `memory`, instead of whenever one is made.
    """

    def __init__(self, scope: Scope, *, once: bool) -> None:
        self.cost = 0
        self.once = once
        self.memory = 0
        self.problems: list[SelError] = []
        self.variables = {
            name: Variable(name, slot, shared=name in scope.captured, is_input=name in scope.inputs)
            for name, slot in scope.slots.items()
        }
        self._compilers: dict[type[Node], Callable[..., Expression]] = {
            tree.Literal: self._literal,
            tree.Name: self._name,
            tree.Chain: self._chain,
            tree.Logic: self._logic,
            tree.Choose: self._choose,
            tree.Prefix: self._prefix,
            tree.Assign: self._assign,
            tree.Access: self._access,
            tree.NewObject: self._new_object,
            tree.NewArray: self._new_array,
            tree.NewArrayOf: self._new_array_of,
        }

    def expression(self, node: Node) -> Expression:
        """The closure of an expression."""
        self.cost += 1
        return self._compilers[type(node)](node)

    def condition(self, node: Node) -> Expression:
        """The closure of an expression that must be BOOLEAN."""
        run = self.expression(node)
        span = node.span

        def check(f: Frame) -> bool:
            value = run(f)
            if value is True:
                return True
            if value is False:
                return False
            raise not_a_condition(value, span)

        return check

    def _literal(self, node: tree.Literal) -> Expression:
        value = node.value
        if value.__class__ is int and value > LONG_MAX:
            raise ParseError("Expected an integer of 64 bits, but found a larger one", span=node.span)
        return lambda _: value

    def _name(self, node: tree.Name) -> Expression:
        name = node.name
        if name in self.variables:
            return self.variables[name].reader()
        if name == "params":
            return lambda _: PARAMS
        if name not in STATIC_NAMES:
            return input_value(name)
        read = input_value(name)

        def run(f: Frame) -> Value:
            if name in f.inputs:
                return read(f)
            raise Unsupported(f"Expected a value, but {name} is a class", span=node.span)

        return run

    def _chain(self, node: tree.Chain) -> Expression:
        first = self.expression(node.first)
        rest = [(sign, self.expression(operand)) for sign, operand in node.rest]
        self.cost += len(rest)
        if len(rest) > 1:
            return fast.chain(first, rest, node.span)
        sign, right = rest[0]
        constant = folded(node)
        if constant is not None:
            return lambda _: constant
        made = fast.binary(sign, first, right, node.span)
        return self._shortcut(sign, node.first, node.rest[0][1], made)

    def _shortcut(self, sign: str, left: Node, right: Node, otherwise: Expression) -> Expression:
        """An operator on an input and a literal needs no calls to fetch them."""
        text = left.value if isinstance(left, tree.Literal) else None
        if self.once and sign == "+" and isinstance(text, str) and self._is_input(right):
            self.memory += fast.SHORT_BYTES
            return fast.text_and_input(text, right.name, otherwise)
        number = right.value if isinstance(right, tree.Literal) else None
        if number.__class__ is int and sign in fast.COMPARE and self._is_input(left):
            return fast.input_compared(sign, left.name, number, otherwise)
        return otherwise

    def _is_input(self, node: Node) -> TypeGuard[tree.Name]:
        return (
            isinstance(node, tree.Name)
            and node.name not in self.variables
            and node.name not in STATIC_NAMES
            and node.name != "params"
        )

    def _logic(self, node: tree.Logic) -> Expression:
        operands = [self.expression(operand) for operand in node.operands]
        spans = [operand.span for operand in node.operands]
        if len(operands) == 2:
            return _and_or(node.operator == "&&", operands, spans)
        # The first operand that settles the result ends the evaluation: false for &&, true for ||.
        settles: bool = node.operator == "||"
        parts = list(zip(operands, spans, strict=True))

        def run(f: Frame) -> bool:
            for operand, span in parts:
                value = operand(f)
                if value.__class__ is not bool:
                    raise _not_boolean(node.operator, value, span)
                if value is settles:
                    return settles
            return not settles

        return run

    def _choose(self, node: tree.Choose) -> Expression:
        arms = [(self.expression(condition), self.expression(then)) for condition, then in node.arms]
        return _chosen(arms, [condition.span for condition, _ in node.arms], self.expression(node.otherwise))

    def _prefix(self, node: tree.Prefix) -> Expression:
        operand = self.expression(node.operand)
        signs = [operators.UNARY[sign] for sign in node.operators]
        self.cost += len(signs)
        span = node.span

        def run(f: Frame) -> Value:
            value = operand(f)
            try:
                for sign in signs:
                    value = sign(value)
            except SelError as error:
                raise error.placed(span) from None
            return value

        return run

    def _assign(self, node: tree.Assign) -> Expression:
        if node.index is not None:
            return self._assign_element(node)
        variable = self.variables[node.target.name]
        value, span = self.expression(node.value), node.span
        assign = variable.assign
        if not node.operator:
            return lambda f: assign(f, value(f), span)
        total = fast.binary(node.operator, variable.reader(), value, span)
        return lambda f: assign(f, total(f), span)

    def _assign_element(self, node: tree.Assign) -> Expression:
        target, value = self.expression(node.target), self.expression(node.value)
        index = self.expression(node.index) if node.index is not None else None
        apply = operators.BINARY.get(node.operator)
        span = node.span

        def run(f: Frame) -> Value:
            array, at = target(f), index(f) if index is not None else None
            try:
                given = value(f)
                if apply is not None:
                    given = apply(f, operators.element(f, array, at), given)
                return operators.put_element(array, at, given)
            except SelError as error:
                raise error.placed(span) from None

        return run

    def _access(self, node: tree.Access) -> Expression:
        base, suffixes = self._base(node)
        steps = [self._suffix(suffix) for suffix in suffixes]
        if isinstance(node.base, tree.Name) and node.base.name not in self.variables and steps:
            steps[0] = _refusing_null(steps[0], node.base)
        if not steps:
            return base
        if len(steps) == 1:
            step = steps[0]
            return lambda f: step(f, base(f))

        def run(f: Frame) -> Value:
            value = base(f)
            for step in steps:
                value = step(f, value)
            return value

        return run

    def _base(self, node: tree.Access) -> tuple[Expression, list[tree.Field | tree.Call | tree.Index]]:
        """The closure of the base, which takes the first member with it if the base is a class."""
        base, first = node.base, node.suffixes[0]
        if isinstance(base, tree.Literal) and isinstance(first, tree.Call):
            self._check_method(base, first)
        is_class = isinstance(base, tree.Name) and base.name in STATIC_NAMES and base.name not in self.variables
        if not (is_class and isinstance(base, tree.Name)) or isinstance(first, tree.Index):
            return self.expression(base), node.suffixes
        self.cost += 2
        name = base.name
        # The arguments are compiled once and shared by both readings, or nested calls would double at each level.
        if isinstance(first, tree.Call):
            arguments = self._arguments(first)
            made = static_call(name, first.name, arguments, first.span)
            dynamic = suffix_call(first.name, arguments, first.span)
        else:
            made = static_field(name, first.name, first.span)
            dynamic = suffix_field(first.name, first.span)
        value = input_value(name)
        if isinstance(made, SelError):
            self.problems.append(made)
        error_or_run = made

        def run(f: Frame) -> Value:
            if name in f.inputs:
                return dynamic(f, value(f))
            if isinstance(error_or_run, SelError):
                raise type(error_or_run)(error_or_run.message, hint=error_or_run.hint, span=error_or_run.span)
            return error_or_run(f)

        return run, node.suffixes[1:]

    def _check_method(self, base: tree.Literal, call: tree.Call) -> None:
        try:
            method_of(base.value, call.name)
        except SelError as error:
            self.problems.append(error.placed(call.span))

    def _arguments(self, call: tree.Call) -> list[Expression]:
        if call.name == "put" and len(call.arguments) == 2:
            return [self.expression(call.arguments[0]), self._reference(call.arguments[1])]
        return [self.expression(argument) for argument in call.arguments]

    def _reference(self, node: Node) -> Expression:
        """The closure of what is put into a map: a variable's cell if it is a variable."""
        self.cost += 1
        if isinstance(node, tree.Name) and node.name in self.variables:
            return self.variables[node.name].reference()
        if isinstance(node, tree.Assign) and node.index is None:
            assign, cell = self._assign(node), self.variables[node.target.name].reference()
            return lambda f: (assign(f), cell(f))[1]
        if isinstance(node, tree.Choose):
            arms = [(self.expression(condition), self._reference(then)) for condition, then in node.arms]
            return _chosen(arms, [condition.span for condition, _ in node.arms], self._reference(node.otherwise))
        return self.expression(node)

    def _suffix(self, suffix: tree.Field | tree.Call | tree.Index) -> Suffix:
        self.cost += 1
        span = suffix.span
        if isinstance(suffix, tree.Call):
            return suffix_call(suffix.name, self._arguments(suffix), span)
        if isinstance(suffix, tree.Field):
            return suffix_field(suffix.name, span)
        index = self.expression(suffix.index)

        def run(f: Frame, target: Value) -> Value:
            try:
                return operators.element(f, target, index(f))
            except SelError as error:
                raise error.placed(span) from None

        return run

    def _new_object(self, node: tree.NewObject) -> Expression:
        name, span = node.type_name, node.span
        made = NEW.get(name)
        if made is None:
            known = name in STATIC_NAMES
            error = (
                Unsupported(f"Expected a class that can be instantiated, but found {name}")
                if known
                else unknown_type(name)
            )
            raise error.placed(span)
        member = made
        arguments = [self.expression(argument) for argument in node.arguments]

        def run(f: Frame) -> Value:
            args = [argument(f) for argument in arguments]
            try:
                return construct(member, name, f, args)
            except SelError as error:
                raise error.placed(span) from None

        return run

    def _array_type(self, name: str, span: Span) -> type[Array]:
        try:
            return array_of(type_named(name), name)
        except SelError as error:
            raise error.placed(span) from None

    def _new_array(self, node: tree.NewArray) -> Expression:
        kind = self._array_type(node.type_name, node.span)
        length, span, default = self.expression(node.length), node.length.span, kind.default

        def run(f: Frame) -> Value:
            size = length(f)
            if size.__class__ is not int:
                raise TypeMismatch(f"Expected LONG as an array's length, but found {kind_of(size)}", span=span)
            if size < 0:
                raise BadValue(f"Expected a length of at least 0, but found {size}", span=span)
            try:
                f.array(size)
            except SelError as error:
                raise error.placed(span) from None
            return kind([default] * size)

        return run

    def _new_array_of(self, node: tree.NewArrayOf) -> Expression:
        kind = self._array_type(node.type_name, node.span)
        items, span = [self.expression(item) for item in node.items], node.span

        def run(f: Frame) -> Value:
            try:
                f.array(len(items))
                return kind([operators.as_element(kind, item(f)) for item in items])
            except SelError as error:
                raise error.placed(span) from None

        return run


def _chosen(arms: list[tuple[Expression, Expression]], spans: list[Span], otherwise: Expression) -> Expression:
    ((condition, then), *more), span = arms, spans[0]
    rest = _chosen(more, spans[1:], otherwise) if len(more) == 1 else otherwise
    parts = list(zip(arms, spans, strict=True))

    def run(f: Frame) -> Value:
        value = condition(f)
        if value is True:
            return then(f)
        if value is False:
            return rest(f)
        raise not_a_condition(value, span)

    def run_many(f: Frame) -> Value:
        for (asks, chosen), at in parts:
            value = asks(f)
            if value is True:
                return chosen(f)
            if value is not False:
                raise not_a_condition(value, at)
        return otherwise(f)

    return run if len(arms) <= 2 else run_many


def not_a_condition(value: Value, span: Span) -> TypeMismatch:
    """The error for a condition that is neither true nor false."""
    return TypeMismatch(f"Expected BOOLEAN as a condition, but found {kind_of(value)}", span=span)


def _refusing_null(step: Suffix, base: tree.Name) -> Suffix:
    """A member of a name that nobody knows: say so, with the class that may have been meant."""
    name, span = base.name, base.span

    def run(f: Frame, target: Value) -> Value:
        if target is None:
            hint = did_you_mean(name, STATIC_NAMES)
            if name in ("java", "javax", "org", "com", "net"):
                hint = "write the class without its package"
            raise BadValue(f"Expected a value before the member, but {name[:64]!r} is NULL", span=span, hint=hint)
        return step(f, target)

    return run


def _and_or(is_and: bool, operands: list[Expression], spans: list[Span]) -> Expression:
    left, right = operands

    def run_and(f: Frame) -> bool:
        a = left(f)
        if a is False:
            return False
        b = right(f) if a is True else None
        if b is True:
            return True
        if b is False:
            return False
        raise _not_boolean("&&", a if a is not True else b, spans[0] if a is not True else spans[1])

    def run_or(f: Frame) -> bool:
        a = left(f)
        if a is True:
            return True
        b = right(f) if a is False else None
        if b is True:
            return True
        if b is False:
            return False
        raise _not_boolean("||", a if a is not False else b, spans[0] if a is not False else spans[1])

    return run_and if is_and else run_or


def _not_boolean(operator: str, value: Value, span: Span) -> TypeMismatch:
    return TypeMismatch(f"Expected BOOLEAN as an operand of {operator!r}, but found {kind_of(value)}", span=span)


def folded(node: tree.Chain) -> Value:
    """The value of one operator on two literal numbers, or None if it must be left to the evaluation."""
    sign, operand = node.rest[0]
    if len(node.rest) > 1 or not isinstance(node.first, tree.Literal) or not isinstance(operand, tree.Literal):
        return None
    a, b = node.first.value, operand.value
    if a.__class__ not in (int, float) or b.__class__ not in (int, float) or (sign in ("/", "%") and b == 0):
        return None
    return operators.BINARY[sign](Frame({}, NOWHERE, DEFAULT_LIMITS, 100, 0, []), a, b)
