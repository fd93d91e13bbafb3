"""Builds the tree bottom-up while the parser runs, and bounds its depth."""

from typing import Any, Final

from lark import Token, Transformer

from kapelle.processors.sel.errors import LimitExceeded, ParseError, Span
from kapelle.processors.sel.grammar import PRECEDENCE
from kapelle.processors.sel.tree import (
    Access,
    Assign,
    Block,
    Call,
    Chain,
    Choose,
    Declare,
    Evaluate,
    Field,
    If,
    Index,
    Items,
    Jump,
    Literal,
    Logic,
    Loop,
    Name,
    NewArray,
    NewArrayOf,
    NewObject,
    Node,
    Prefix,
    Return,
    Throw,
)

# Whatever the configured depth: walking the tree takes about three Python frames a level, and Python has a thousand.
DEPTH_MAX: Final = 150
# What the parts of a rule have become: tokens, nodes, or what the method of a rule has returned, as the grammar says.
Parts = list[Any]
ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f", "\\": "\\", "'": "'", '"': '"'}


# What to write instead of what Java has and SEL has not.
FOREIGN = {
    "++": "write x = x + 1 or x += 1",
    "--": "write x = x - 1 or x -= 1; for a double minus leave a space",
    "&": "bitwise operators are not in SEL; for 'and' write &&",
    "|": "bitwise operators are not in SEL; for 'or' write ||",
    "->": "lambdas are not in SEL",
    "::": "method references are not in SEL",
    "@": "annotations are not in SEL",
    "do": "write while (…) {…}",
    "switch": "write if (…) … else if (…) …",
    "try": "exceptions cannot be caught in SEL",
    "catch": "exceptions cannot be caught in SEL",
    "final": "leave it out",
    "char": "write String",
    "byte": "write int",
    "short": "write int",
    "instanceof": "types are fixed in SEL; there is nothing to ask",
    "class": "classes cannot be defined in SEL",
    "this": "there are no objects to refer to; name the variable",
}


def foreign_sign(sign: str, span: Span) -> ParseError:
    """The error for a word or sign of Java that SEL has not."""
    hint = FOREIGN.get(sign, "") or FOREIGN.get(sign[0], "")
    return ParseError(f"Expected an expression, but {sign} is not in SEL", span=span, hint=hint)


def _span(token: Token) -> Span:
    return (token.start_pos or 0, token.end_pos or 0)


def _over(first: Node, last: Node) -> Span:
    return (first.span[0], last.span[1])


class Builder(Transformer[Token, Block]):
    """Builds nodes bottom-up while the parser runs. Methods are named for the grammar's rules."""

    def __init__(self, depth_max: int) -> None:
        super().__init__()
        self._depth_max = min(depth_max, DEPTH_MAX)
        self._depth_allowed = self._depth_max

    def _depth(self, span: Span, *children: Node | None) -> int:
        depth = 1 + max((child.depth for child in children if child is not None), default=0)
        if depth > self._depth_max:
            raise LimitExceeded("stack_depth", self._depth_allowed, span=span)
        return depth

    def start(self, children: list[Node | None]) -> Block:
        body = [child for child in children if child is not None]
        return Block((0, 0), self._depth((0, 0), *body), body)

    def import_(self, _: list[Token]) -> None:
        return None

    def empty(self, _: list[Token]) -> None:
        return None

    def block(self, children: list[Node | None]) -> Block:
        body = [child for child in children if child is not None]
        span = _over(body[0], body[-1]) if body else (0, 0)
        return Block(span, self._depth(span, *body), body)

    def expression_statement(self, children: list[Node]) -> Evaluate:
        return Evaluate(children[0].span, self._depth(children[0].span, children[0]), children[0])

    def if_(self, children: Parts) -> If:
        condition, then = children[0], children[1] or Block(children[0].span, 1, [])
        otherwise = children[2] if len(children) > 2 else None
        span = condition.span
        if isinstance(otherwise, If):
            depth = max(otherwise.depth, self._depth(span, condition, then))
            otherwise.arms.insert(0, (condition, then))
            return If(span, depth, otherwise.arms, otherwise.otherwise)
        return If(span, self._depth(span, condition, then, otherwise), [(condition, then)], otherwise)

    def while_(self, children: Parts) -> Loop:
        keyword, condition, body = children
        body = body or Block(_span(keyword), 1, [])
        return Loop(_span(keyword), self._depth(_span(keyword), condition, body), None, condition, None, body)

    def for_(self, children: Parts) -> Loop:
        keyword, init, condition, update, body = children
        body = body or Block(_span(keyword), 1, [])
        depth = self._depth(_span(keyword), init, condition, update, body)
        return Loop(_span(keyword), depth, init, condition, update, body)

    def for_init(self, children: list[Node]) -> Node | None:
        return children[0] if children else None

    for_part = for_init

    def break_(self, children: list[Token]) -> Jump:
        return Jump(_span(children[0]), 1, "break")

    def continue_(self, children: list[Token]) -> Jump:
        return Jump(_span(children[0]), 1, "continue")

    def return_(self, children: list[Node]) -> Return:
        return Return(children[0].span, self._depth(children[0].span, children[0]), children[0])

    def throw_(self, children: list[Node]) -> Throw:
        return Throw(children[0].span, self._depth(children[0].span, children[0]), children[0])

    def declare(self, children: Parts) -> Declare:
        return self._declare(children[0], children[1:], is_array=False)

    def declare_array(self, children: Parts) -> Declare:
        return self._declare(children[0], children[2:], is_array=True)

    def _declare(self, token: Token, declarators: list[Parts], *, is_array: bool) -> Declare:
        names: list[tuple[str, Node | None]] = []
        for declared in declarators:
            value = declared[1] if len(declared) > 1 else None
            if isinstance(value, Items):
                if not is_array:
                    raise ParseError(
                        "Expected one value, but found a list", span=value.span, hint="write Type[] name = {…}"
                    )
                value = NewArrayOf(value.span, value.depth, str(token), value.items)
            names.append((str(declared[0]), value))
        depth = self._depth(_span(token), *(value for _, value in names))
        return Declare(_span(token), depth, str(token), is_array, names)

    def declarator(self, children: Parts) -> Parts:
        return children

    def array_items(self, children: list[Node]) -> Items:
        span = _over(children[0], children[-1]) if children else (0, 0)
        return Items(span, self._depth(span, *children), children)

    def assign(self, children: list[Node]) -> Assign:
        return self._assign(children[0], "", children[1])

    def op_assign(self, children: Parts) -> Assign:
        return self._assign(children[0], str(children[1])[0], children[2])

    def _assign(self, target: Node, operator: str, value: Node) -> Assign:
        span = _over(target, value)
        if isinstance(target, Name):
            return Assign(span, self._depth(span, value), target, None, operator, value)
        if isinstance(target, Access) and isinstance(target.base, Name) and len(target.suffixes) == 1:
            suffix = target.suffixes[0]
            if isinstance(suffix, Index):
                return Assign(span, self._depth(span, suffix, value), target.base, suffix.index, operator, value)
        raise ParseError(
            "Expected a variable or an element of an array on the left of the assignment", span=target.span
        )

    def choose(self, children: list[Node]) -> Choose:
        condition, then, otherwise = children
        span = _over(condition, otherwise)
        if isinstance(otherwise, Choose):
            depth = max(otherwise.depth, self._depth(span, condition, then))
            otherwise.arms.insert(0, (condition, then))
            return Choose(span, depth, otherwise.arms, otherwise.otherwise)
        return Choose(span, self._depth(span, condition, then, otherwise), [(condition, then)], otherwise)

    def binary(self, children: Parts) -> Node:
        """Group operands by the operators between them, level by level, the tightest first."""
        if len(children) == 3:
            return self._group(children)
        signs = set(map(str, children[1::2]))
        for level in PRECEDENCE:
            if signs.isdisjoint(level):
                continue
            if signs.issubset(level):
                return self._group(children)
            signs.difference_update(level)
            grouped: Parts = []
            run: Parts = [children[0]]
            for at in range(1, len(children), 2):
                if children[at] in level:
                    run += children[at : at + 2]
                else:
                    grouped += [run[0] if len(run) == 1 else self._group(run), children[at]]
                    run = [children[at + 1]]
            grouped.append(run[0] if len(run) == 1 else self._group(run))
            children = grouped
        return self._group(children)

    def _group(self, run: Parts) -> Node:
        """Operands with operators of one level between them."""
        operands: list[Node] = run[0::2]
        span = _over(operands[0], operands[-1])
        depth = self._depth(span, *operands)
        if run[1] in ("&&", "||"):
            return Logic(span, depth, str(run[1]), operands)
        return Chain(span, depth, operands[0], list(zip(map(str, run[1::2]), operands[1:], strict=True)))

    def foreign(self, children: list[Token]) -> Node:
        raise foreign_sign(str(children[0]), _span(children[0]))

    def prefix(self, children: Parts) -> Node:
        sign, operand = children
        span = (_span(sign)[0], operand.span[1])
        if sign == "-" and isinstance(operand, Literal) and operand.value.__class__ in (int, float):
            # The smallest LONG is its own negative.
            return Literal(span, 1, operand.value if operand.value == -(2**63) else -operand.value)
        if isinstance(operand, Prefix):
            operand.operators.append(str(sign))
            operand.span = span
            return operand
        return Prefix(span, self._depth(span, operand), [str(sign)], operand)

    def access(self, children: Parts) -> Access:
        base, first, *_ = children
        if isinstance(base, NewArray) and isinstance(first, Index):
            raise ParseError("Expected an array of one dimension, but found two", span=first.span)
        return Access(_over(base, children[-1]), self._depth(base.span, *children), base, children[1:])

    def field(self, children: list[Token]) -> Field:
        return Field(_span(children[0]), 1, str(children[0]))

    def call(self, children: Parts) -> Call:
        span = _span(children[0])
        return Call(span, self._depth(span, *children[1]), str(children[0]), children[1])

    def index(self, children: list[Node]) -> Index:
        return Index(children[0].span, self._depth(children[0].span, children[0]), children[0])

    def arguments(self, children: list[Node]) -> list[Node]:
        return children

    def name(self, children: list[Token]) -> Name:
        return Name(_span(children[0]), 1, str(children[0]))

    def new_object(self, children: Parts) -> NewObject:
        span = _span(children[0])
        return NewObject(span, self._depth(span, *children[1]), str(children[0]), children[1])

    def new_array(self, children: Parts) -> NewArray:
        span = _span(children[0])
        return NewArray(span, self._depth(span, children[1]), str(children[0]), children[1])

    def new_array_of(self, children: Parts) -> NewArrayOf:
        return NewArrayOf(_span(children[0]), children[2].depth, str(children[0]), children[2].items)

    def integer(self, children: list[Token]) -> Literal:
        text = str(children[0]).rstrip("lL")
        if text[:2] in ("0x", "0X"):
            raise ParseError("Expected a decimal number, but found a hexadecimal one", span=_span(children[0]))
        # 2^63 itself is let through for `-9223372036854775808`; without the sign the compiler refuses it.
        digits = text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > 2**63:
            raise ParseError("Expected an integer of 64 bits, but found a larger one", span=_span(children[0]))
        return Literal(_span(children[0]), 1, int(digits))

    def decimal(self, children: list[Token]) -> Literal:
        return Literal(_span(children[0]), 1, float(str(children[0]).rstrip("fFdD")))

    def string(self, children: list[Token]) -> Literal:
        text = str(children[0])[1:-1]
        return Literal(_span(children[0]), 1, _unescaped(text, children[0]) if "\\" in text else text)

    def true(self, children: list[Token]) -> Literal:
        return Literal(_span(children[0]), 1, True)

    def false(self, children: list[Token]) -> Literal:
        return Literal(_span(children[0]), 1, False)

    def null(self, children: list[Token]) -> Literal:
        return Literal(_span(children[0]), 1, None)


def _unescaped(text: str, token: Token) -> str:
    out: list[str] = []
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        out.append(text[position:backslash])
        letter = text[backslash + 1]
        if letter not in ESCAPES:
            at = (token.start_pos or 0) + 1 + backslash
            raise ParseError(
                f"Expected one of \\n \\t \\b \\r \\f \\\\ \\' \\\" in a string, but found \\{letter}",
                span=(at, at + 2),
                hint=f"for a backslash in a regular expression write \\\\{letter}",
            )
        out.append(ESCAPES[letter])
        position = backslash + 2
    out.append(text[position:])
    return "".join(out)
