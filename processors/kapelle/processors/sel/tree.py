"""The tree of an expression.

What Java writes as a deep tree is kept flat here: a chain of operators, of `else if`, of `? :`, of members and of
prefix signs is one node each, so that long expressions are not deep ones. Real nesting is bounded while the tree is
built (see `builder`); that is why nothing that walks the tree can run out of Python's stack.
"""

import msgspec

from kapelle.processors.sel.errors import Span


class Node(msgspec.Struct, gc=False):
    """Where a part of the expression is, and how deep it nests."""

    span: Span
    depth: int


class Literal(Node, gc=False):
    value: str | int | float | bool | None


class Name(Node, gc=False):
    name: str


class Chain(Node, gc=False):
    """Operands of one level, from left to right: `a + b - c`."""

    first: Node
    rest: list[tuple[str, Node]]


class Logic(Node, gc=False):
    """`a && b && c`, or the same with `||`."""

    operator: str
    operands: list[Node]


class Choose(Node, gc=False):
    """`a ? b : c ? d : e`, as the pairs (a, b), (c, d) and the rest e."""

    arms: list[tuple[Node, Node]]
    otherwise: Node


class Prefix(Node, gc=False):
    """Prefix signs, the innermost first."""

    operators: list[str]
    operand: Node


class Assign(Node, gc=False):
    """`name = value`, `name[index] += value`; the operator is empty for `=`."""

    target: Name
    index: Node | None
    operator: str
    value: Node


class Field(Node, gc=False):
    name: str


class Call(Node, gc=False):
    name: str
    arguments: list[Node]


class Index(Node, gc=False):
    index: Node


class Access(Node, gc=False):
    """A value and the members that are applied to it in turn."""

    base: Node
    suffixes: list[Field | Call | Index]


class NewObject(Node, gc=False):
    type_name: str
    arguments: list[Node]


class NewArray(Node, gc=False):
    type_name: str
    length: Node


class NewArrayOf(Node, gc=False):
    type_name: str
    items: list[Node]


class Block(Node, gc=False):
    body: list[Node]


class Evaluate(Node, gc=False):
    """An expression statement: its value is the program's if it is the last."""

    value: Node


class If(Node, gc=False):
    """`if … else if … else …`, as pairs and the rest."""

    arms: list[tuple[Node, Node]]
    otherwise: Node | None


class Loop(Node, gc=False):
    """`while` and `for`."""

    init: Node | None
    condition: Node | None
    update: Node | None
    body: Node


class Jump(Node, gc=False):
    """`break` or `continue`."""

    word: str


class Return(Node, gc=False):
    value: Node


class Throw(Node, gc=False):
    value: Node


class Declare(Node, gc=False):
    """`Type a = e, b;`. A declarator is a name and its value, if any."""

    type_name: str
    is_array: bool
    names: list[tuple[str, Node | None]]


class Items(Node, gc=False):
    """`{a, b}` in an array's initialiser. Only the builder sees it."""

    items: list[Node]
