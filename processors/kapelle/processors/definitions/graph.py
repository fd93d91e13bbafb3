"""The graph of the steps of one block: where it begins, what follows what, and which edges lead back.

Cycles are allowed as long as they are natural loops: an edge u → h leads back if h *dominates* u, that is, if every way
from the beginning to u passes h. Then h is the header of a loop, and its body is h with all steps that reach u without
passing h. Edges back to one header make one loop; two loops are nested or have no step in common. Without the edges
that lead back no cycle may be left: one that is left can be entered at two places, and then nobody could say which
steps a new round begins with. Such a graph is called irreducible, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from heapq import heappop, heappush

import msgspec

from kapelle.processors.definitions.models import Step
from kapelle.processors.definitions.problems import Report


class Loop(msgspec.Struct, frozen=True):
    """A natural loop."""

    header: str
    body: frozenset[str]
    parent: str | None
    back_from: tuple[str, ...]


class Graph(msgspec.Struct, frozen=True):
    """The steps of one block in their order. `successors` and `predecessors` are without the edges that lead back."""

    roots: tuple[str, ...]
    successors: Mapping[str, tuple[str, ...]]
    predecessors: Mapping[str, tuple[str, ...]]
    back_edges: Mapping[str, tuple[str, ...]]
    loops: Mapping[str, Loop]
    order: tuple[str, ...]


Edges = Mapping[str, tuple[str, ...]]


def graph_of(steps: tuple[Step, ...]) -> Graph:
    """The graph of one block, whose ids differ. Refused if a successor is unknown, a step is never reached, or a loop
    is not natural.
    """
    report = Report()
    check_successors(steps, "steps", report)
    report.refuse_if_any()
    graph = checked_graph(steps, "steps", report)
    report.refuse_if_any()
    return graph


def check_successors(steps: tuple[Step, ...], path: str, report: Report) -> None:
    """Report successors that are not there."""
    known = {step.id for step in steps}
    for index, step in enumerate(steps):
        for name in step.successors:
            if name not in known:
                where = f"{path}[{index}].{step.kind}.transition.successors.{name}"
                report.add(where, name, f"a step of the same block{nearest(name, known)}")


def nearest(name: str, known: set[str]) -> str:
    """What could have been meant, in words."""
    near = get_close_matches(name, sorted(known), n=1)
    return f", such as {near[0]!r}" if near else ""


def checked_graph(steps: tuple[Step, ...], path: str, report: Report) -> Graph:
    """The graph of steps whose successors all exist. What is wrong with it is reported."""
    edges: Edges = {step.id: tuple(step.successors) for step in steps}
    roots = _roots(edges)
    dominators = _dominators(edges, roots)
    for name in (step for step in edges if step not in dominators):
        report.note(
            path,
            f"step {name!r}, which is in a cycle that no other step leads to",
            "a path to every step from a step without predecessors",
        )
    edges = {name: after for name, after in edges.items() if name in dominators}
    forward = {u: tuple(v for v in after if not _leads_back(u, v, dominators)) for u, after in edges.items()}
    back = {u: tuple(v for v in after if _leads_back(u, v, dominators)) for u, after in edges.items()}
    order = _topological(forward)
    stuck = edges.keys() - set(order)
    if stuck:
        report.note(path, _sideways(forward, stuck), "loops that begin at one step")
    return Graph(roots, forward, _reversed(forward), back, _loops(edges, back, order), order)


def _reversed(edges: Edges) -> dict[str, tuple[str, ...]]:
    reverse: dict[str, list[str]] = {name: [] for name in edges}
    for u, after in edges.items():
        for v in after:
            reverse[v].append(u)
    return {name: tuple(before) for name, before in reverse.items()}


def _roots(edges: Edges) -> tuple[str, ...]:
    """The steps that nothing but themselves leads to; if there are none, the first of the list."""
    before = _reversed(edges)
    roots = tuple(name for name in edges if not set(before[name]) - {name})
    return roots or tuple(edges)[:1]


def _dominators(edges: Edges, roots: tuple[str, ...]) -> dict[str, set[str]]:
    """For each step that is reached from a root: the steps that every way to it passes, itself included."""
    before = _reversed(edges)
    reached = _reached(edges, roots)
    dominators = {name: {name} if name in roots else set(reached) for name in reached}
    changed = True
    while changed:
        changed = False
        for name in reached:
            if name in roots:
                continue
            ways = [dominators[u] for u in before[name] if u in dominators]
            made = set.intersection(*ways) | {name}
            if made != dominators[name]:
                dominators[name], changed = made, True
    return dominators


def _reached(edges: Edges, roots: tuple[str, ...]) -> list[str]:
    """All that can be reached, in an order in which dominators settle in few rounds."""
    finished: list[str] = []
    seen = set(roots)
    stack = [(root, iter(edges[root])) for root in reversed(roots)]
    while stack:
        name, after = stack[-1]
        following = next((v for v in after if v not in seen), None)
        if following is None:
            finished.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges[following])))
    return finished[::-1]


def _leads_back(u: str, v: str, dominators: Mapping[str, set[str]]) -> bool:
    return v in dominators.get(u, ())


def _topological(forward: Edges) -> tuple[str, ...]:
    """The steps after all that come before them, otherwise as they are listed. Steps of a cycle are left out."""
    place = {name: number for number, name in enumerate(forward)}
    waiting = {name: len(before) for name, before in _reversed(forward).items()}
    ready = [place[name] for name, count in waiting.items() if count == 0]
    names, order = list(forward), []
    while ready:
        name = names[heappop(ready)]
        order.append(name)
        for following in forward[name]:
            waiting[following] -= 1
            if waiting[following] == 0:
                heappush(ready, place[following])
    return tuple(order)


def _loops(edges: Edges, back: Edges, order: tuple[str, ...]) -> dict[str, Loop]:
    """A loop for each header. A header comes after those of the loops around it, because they dominate it."""
    before = _reversed(edges)
    sources = {h: tuple(u for u, headers in back.items() if h in headers) for h in order}
    loops: dict[str, Loop] = {}
    for header in order:
        if sources[header]:
            around = [loop for loop in loops.values() if header in loop.body]
            parent = min(around, key=lambda loop: len(loop.body)).header if around else None
            loops[header] = Loop(header, _body(header, sources[header], before), parent, sources[header])
    return loops


def _body(header: str, sources: tuple[str, ...], before: Edges) -> frozenset[str]:
    """The header, and all that reaches a source of an edge back to it without passing it."""
    body, pending = {header}, list(sources)
    while pending:
        name = pending.pop()
        if name not in body:
            body.add(name)
            pending.extend(before[name])
    return frozenset(body)


def _sideways(forward: Edges, stuck: set[str]) -> str:
    """The edge that enters a cycle past its beginning, in words.

    Of what cannot be ordered, the first step that is entered from outside is taken for the beginning of its cycle. A
    cycle with one entry would be a natural loop, so there is another.
    """
    cycle = _cycle_in(forward, stuck)
    before = _reversed(forward)
    entries = [(u, v) for v in forward if v in cycle for u in before[v] if u not in cycle]
    first = entries[0][1]
    u, v = next((edge for edge in entries if edge[1] != first), entries[-1])
    names = ", ".join(repr(name) for name in forward if name in cycle)
    return (
        f"the edge from {u!r} to {v!r}, which enters the cycle of {names} past {first!r}"
        f" (lead {u!r} to {first!r} instead, or give {u!r} a copy of {v!r} of its own)"
    )


def _cycle_in(forward: Edges, stuck: set[str]) -> set[str]:
    """Steps that all reach each other: a whole strongly connected part, the first in the order of the list."""
    for name in forward:
        if name in stuck:
            after = set(_reached(forward, tuple(forward[name])))
            if name in after:
                before = set(_reached(_reversed(forward), (name,)))
                return after & before
    raise AssertionError("what cannot be ordered holds a cycle")
