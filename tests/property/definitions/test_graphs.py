"""On random graphs, loops are what the definitions of the textbooks say, checked the slow way."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.definitions import DefinitionRefused, Graph, Step, StepKind, graph_of

Edges = dict[str, tuple[str, ...]]
START = "(start)"


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Up to eight steps; any edge is as likely as any other, so that about half of the graphs have odd cycles."""
    names = [f"s{n}" for n in range(draw(st.integers(1, 8)))]
    density = draw(st.integers(1, 4))
    return {
        name: tuple(draw(st.lists(st.sampled_from(names), max_size=min(density, len(names)), unique=True)))
        for name in names
    }


def steps_of(edges: Edges) -> tuple[Step, ...]:
    return tuple(
        Step(StepKind.STEP, name, "NoOp", successors=dict.fromkeys(after, "true")) for name, after in edges.items()
    )


def roots_of(edges: Edges) -> list[str]:
    entered = {v for u, after in edges.items() for v in after if u != v}
    return [name for name in edges if name not in entered] or list(edges)[:1]


def reach(edges: Edges, sources: list[str], without: str | None = None) -> set[str]:
    found: set[str] = set()
    pending = [name for name in sources if name != without]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(v for v in edges[name] if v != without)
    return found


def dominates(edges: Edges, h: str, u: str) -> bool:
    """Whether u cannot be reached any more when h is taken away."""
    return h == u or u not in reach(edges, roots_of(edges), without=h)


def collapses(edges: Edges) -> bool:
    """Whether the graph becomes one node when loops of one node are dropped and only children joined (T1 and T2)."""
    after = {START: set(roots_of(edges)), **{name: set(following) for name, following in edges.items()}}
    while True:
        for name, following in after.items():
            following.discard(name)
        joined = None
        for name in list(after):
            parents = [u for u in after if name in after[u]]
            if name != START and len(parents) == 1:
                joined = (parents[0], name)
                break
        if joined is None:
            return len(after) == 1
        parent, name = joined
        after[parent] = (after[parent] - {name}) | after.pop(name)


def accepted(edges: Edges) -> Graph | None:
    try:
        return graph_of(steps_of(edges))
    except DefinitionRefused:
        return None


@given(graphs())
@settings(max_examples=600, deadline=None)
def test_a_graph_is_accepted_if_all_is_reached_and_it_collapses(edges: Edges) -> None:
    is_reached = reach(edges, roots_of(edges)) == set(edges)

    graph = accepted(edges)

    assert (graph is not None) == (is_reached and collapses(edges))


@given(graphs())
@settings(max_examples=400, deadline=None)
def test_an_edge_leads_back_if_its_target_dominates_its_source(edges: Edges) -> None:
    graph = accepted(edges)
    if graph is None:
        return

    assert graph.roots == tuple(roots_of(edges))
    for u, after in edges.items():
        assert graph.back_edges[u] == tuple(v for v in after if dominates(edges, v, u))
        assert graph.successors[u] == tuple(v for v in after if not dominates(edges, v, u))
    for v in edges:
        assert graph.predecessors[v] == tuple(u for u in edges if v in graph.successors[u])


@given(graphs())
@settings(max_examples=400, deadline=None)
def test_the_order_puts_every_step_after_its_predecessors(edges: Edges) -> None:
    graph = accepted(edges)
    if graph is None:
        return

    assert sorted(graph.order) == sorted(edges)
    place = {name: number for number, name in enumerate(graph.order)}
    assert all(place[u] < place[v] for u in edges for v in graph.successors[u])


@given(graphs())
@settings(max_examples=400, deadline=None)
def test_a_loop_is_its_header_and_all_that_reaches_it_again_without_passing_it(edges: Edges) -> None:
    graph = accepted(edges)
    if graph is None:
        return

    seen: list[str] = []
    for header, loop in graph.loops.items():
        back_from = [u for u in edges if header in edges[u] and dominates(edges, header, u)]
        body = {v for v in edges if v != header and reach(edges, [v], without=header) & set(back_from)}
        assert loop.header == header
        assert loop.back_from == tuple(back_from)
        assert loop.body == body | {header}
        around = [one for one in graph.loops.values() if one is not loop and header in one.body]
        assert all(loop.body < one.body for one in around)
        assert loop.parent == min(around, key=lambda one: len(one.body)).header if around else loop.parent is None
        assert loop.parent is None or loop.parent in seen
        seen.append(header)
