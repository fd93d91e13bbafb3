"""Which names an expression assigns, which a map may refer to, and which it needs from outside.

A name is an input if it is used before the text assigns or declares it. A loop's update comes after its body, as it
runs. The names of types are not inputs; `params` is reported, because it stands for every parameter there is.
"""

from collections.abc import Iterator

import msgspec

from kapelle.processors.sel import tree
from kapelle.processors.sel.members.registry import STATIC_NAMES
from kapelle.processors.sel.tree import Node


class Scope(msgspec.Struct):
    """The names of one program."""

    slots: dict[str, int]
    captured: set[str]
    inputs: dict[str, None]  # in the order of their first use
    keys: dict[str, None]


def children(node: Node) -> Iterator[Node]:  # noqa: C901 - one arm for each shape of node, in evaluation order
    """The parts of a node in the order in which they run."""
    match node:
        case tree.Chain(first=first, rest=rest):
            yield first
            yield from (operand for _, operand in rest)
        case tree.Logic(operands=nodes) | tree.NewArrayOf(items=nodes) | tree.Block(body=nodes):
            yield from nodes
        case tree.NewObject(arguments=nodes) | tree.Call(arguments=nodes):
            yield from nodes
        case tree.Choose(arms=arms, otherwise=otherwise) | tree.If(arms=arms, otherwise=otherwise):
            for condition, then in arms:
                yield condition
                yield then
            if otherwise is not None:
                yield otherwise
        case tree.Prefix(operand=child) | tree.Index(index=child) | tree.NewArray(length=child):
            yield child
        case tree.Evaluate(value=child) | tree.Return(value=child) | tree.Throw(value=child):
            yield child
        case tree.Access(base=base, suffixes=suffixes):
            yield base
            yield from suffixes
        case tree.Loop(init=init, condition=condition, update=update, body=body):
            yield from (part for part in (init, condition, body, update) if part is not None)
        case _:
            return


def scope_of(program: Node) -> Scope:
    """Walk the tree once, in the order of evaluation."""
    scope = Scope({}, set(), {}, {})
    _walk(program, scope)
    return scope


def _walk(node: Node, scope: Scope) -> None:
    match node:
        case tree.Name(name=name):
            _use(name, scope)
        case tree.Assign():
            _walk_assign(node, scope)
        case tree.Declare(names=names):
            for name, initial in names:
                if initial is not None:
                    _walk(initial, scope)
                scope.slots.setdefault(name, len(scope.slots))
        case _:
            if isinstance(node, tree.Access) and isinstance(node.base, tree.Name) and node.base.name == "params":
                scope.keys.update(dict.fromkeys(_constant_key(node.suffixes[0])))
            if isinstance(node, tree.Call) and node.name == "put" and len(node.arguments) == 2:
                scope.captured.update(_referred(node.arguments[1]))
            for child in children(node):
                _walk(child, scope)


def _walk_assign(node: tree.Assign, scope: Scope) -> None:
    if node.index is not None or node.operator:
        _use(node.target.name, scope)
    if node.index is not None:
        _walk(node.index, scope)
    _walk(node.value, scope)
    if node.index is None:
        scope.slots.setdefault(node.target.name, len(scope.slots))


def _constant_key(suffix: Node) -> Iterator[str]:
    """The `x` of `params.get("x")` and `params["x"]`: a parameter that must be known before this one."""
    argument: Node | None = None
    if isinstance(suffix, tree.Index):
        argument = suffix.index
    elif isinstance(suffix, tree.Call) and suffix.name == "get" and len(suffix.arguments) == 1:
        argument = suffix.arguments[0]
    if isinstance(argument, tree.Literal) and isinstance(argument.value, str):
        yield argument.value


def _use(name: str, scope: Scope) -> None:
    if name not in scope.slots and name not in STATIC_NAMES:
        scope.inputs[name] = None


def _referred(node: Node) -> Iterator[str]:
    """The variables that an argument refers to, rather than computes from."""
    match node:
        case tree.Name(name=name):
            yield name
        case tree.Assign(target=target, index=None):
            yield target.name
        case tree.Choose(arms=arms, otherwise=otherwise):
            for _, then in arms:
                yield from _referred(then)
            yield from _referred(otherwise)
        case _:
            return
