"""Graphs of steps: roots, order, loops in loops, and what is no graph of ours."""

import pytest

from kapelle.processors.definitions import DefinitionRefused, Loop, Step, StepKind, graph_of


def steps_of(edges: str) -> tuple[Step, ...]:
    """`"a b c; b c; c"` is a → b, a → c, b → c."""
    made = []
    for part in edges.split(";"):
        name, *after = part.split()
        made.append(Step(StepKind.STEP, name, "NoOp", successors=dict.fromkeys(after, "true")))
    return tuple(made)


def test_a_graph_without_cycles_has_roots_order_and_no_loops() -> None:
    graph = graph_of(steps_of("d e; a c; b c; c d; e"))

    assert graph.roots == ("a", "b")
    assert graph.order == ("a", "b", "c", "d", "e")
    assert graph.successors["c"] == ("d",)
    assert graph.predecessors["c"] == ("a", "b")
    assert graph.loops == {}
    assert set(graph.back_edges.values()) == {()}


def test_a_graph_without_steps_is_empty() -> None:
    assert graph_of(()).order == ()


def test_an_edge_to_a_step_that_all_ways_pass_leads_back() -> None:
    graph = graph_of(steps_of("start ask; ask wait end; wait ask; end"))

    assert graph.back_edges["wait"] == ("ask",)
    assert graph.successors["wait"] == ()
    assert graph.predecessors["ask"] == ("start",)
    assert graph.loops == {"ask": Loop("ask", frozenset({"ask", "wait"}), None, ("wait",))}
    assert graph.order == ("start", "ask", "wait", "end")


def test_a_step_that_leads_to_itself_is_a_loop_and_may_be_a_root() -> None:
    graph = graph_of(steps_of("poll poll next; next; other"))

    assert graph.roots == ("poll", "other")
    assert graph.loops == {"poll": Loop("poll", frozenset({"poll"}), None, ("poll",))}
    assert graph.predecessors["poll"] == ()


def test_where_every_step_has_a_predecessor_the_first_is_the_root() -> None:
    graph = graph_of(steps_of("a b; b a c; c"))

    assert graph.roots == ("a",)
    assert graph.loops["a"].body == {"a", "b"}


def test_edges_back_to_one_header_make_one_loop() -> None:
    graph = graph_of(steps_of("h a b; a h; b h end; end"))

    assert graph.loops == {"h": Loop("h", frozenset({"h", "a", "b"}), None, ("a", "b"))}


def test_loops_nest_and_are_listed_from_outside_in() -> None:
    graph = graph_of(steps_of("s o; o m; m i; i i2; i2 i m2; m2 m o2; o2 o end; end"))

    assert list(graph.loops) == ["o", "m", "i"]
    assert [loop.parent for loop in graph.loops.values()] == [None, "o", "m"]
    assert graph.loops["i"].body == {"i", "i2"}
    assert graph.loops["m"].body == {"m", "i", "i2", "m2"}
    assert graph.loops["o"].body == {"o", "m", "i", "i2", "m2", "o2"}


def test_a_cycle_that_nothing_leads_to_is_refused() -> None:
    with pytest.raises(DefinitionRefused) as refused:
        graph_of(steps_of("a; x y; y x"))

    assert [problem.value for problem in refused.value.problems] == [
        "step 'x', which is in a cycle that no other step leads to",
        "step 'y', which is in a cycle that no other step leads to",
    ]


@pytest.mark.parametrize(
    ("edges", "named"),
    [
        ("s a b; a b; b a", "the edge from 's' to 'b', which enters the cycle of 'a', 'b' past 'a'"),
        ("s a; t b; a b; b c; c a", "the edge from 't' to 'b', which enters the cycle of 'a', 'b', 'c' past 'a'"),
        ("s h; h a b; a b; b a h", "the edge from 'h' to 'b', which enters the cycle of 'a', 'b' past 'a'"),
        ("s a; t b; a b x; b a; x", "the edge from 't' to 'b', which enters the cycle of 'a', 'b' past 'a'"),
    ],
)
def test_a_cycle_with_two_entries_is_refused_by_the_edge_that_enters_sideways(edges: str, named: str) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        graph_of(steps_of(edges))

    [problem] = refused.value.problems
    assert named in problem.value
    assert "instead, or give" in problem.value


def test_an_unknown_successor_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(DefinitionRefused) as refused:
        graph_of(steps_of("load lod; loud"))

    assert str(refused.value) == (
        "steps[0].step.transition.successors.lod: Expected a step of the same block, such as 'loud', but found \"lod\""
    )


def test_three_hundred_steps_that_all_lead_back_are_read_in_no_time() -> None:
    names = [f"s{n}" for n in range(300)]
    edges = "; ".join(" ".join([name, *names[: n + 1], *names[n + 1 : n + 2]]) for n, name in enumerate(names))

    graph = graph_of(steps_of(edges))

    assert graph.order == tuple(names)
    assert len(graph.loops) == 300
