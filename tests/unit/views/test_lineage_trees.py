"""The lineage of signals across composite steps: from an instance to its children, and from a child to its root."""

from typing import Any

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.wiring import SIGNALS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing.engine import Engine
from kapelle.views import Views
from kapelle.views.queries import lineage
from kapelle.views.queries.lineage import CHILDREN_MAX, Direction
from tests.support.trees import Json, foreach, rounds, subworkflow, tree
from tests.unit.views.signalled import on, say, says, view_of
from tests.unit.views.test_signals import edges

LOOP = inline_id(ChildKind.FOREACH, "etl/1", "loop")
TELLS: Json = {"step": {"id": "tells", "type": "NoOp", "signal_outputs": [says("told", n=1)]}}


def tells_of(param: str) -> Json:
    """A step that announces a signal of its own in each iteration."""
    params = {"n": {"type": "LONG", "expression": param}}
    return {"step": {"id": "tells", "type": "NoOp", "signal_outputs": [{"name": "told", "params": params}]}}


def etl(*steps: Json) -> Engine:
    """The workflow `etl` with these steps, and an instance that the signal `orders` has started."""
    engine = Engine()
    engine.push(tree(*steps, workflow_id="etl", signal_triggers=[on({"orders": {}})]))
    say(engine, "orders", "one")
    return engine


def forward(views: Views, **more: int) -> dict[str, Any]:
    return views.read(lineage._lineage, ("INSTANCE", "etl", 1), Direction.FORWARD, 20, **more)


def ids(found: dict[str, Any]) -> set[str]:
    return {node["id"] for node in found["nodes"]}


def test_lineage_goes_forward_from_an_instance_to_a_signal_of_an_iteration() -> None:
    found = forward(view_of(etl(foreach("loop", 1, TELLS))))

    assert edges(found) == {
        ("instance etl 1", "LAUNCHED", f"instance {LOOP} 1"),
        (f"instance {LOOP} 1", "PUBLISHED", "signal told 1"),
    }
    assert [one["step_id"] for one in found["edges"] if one["type"] == "LAUNCHED"] == ["loop"]
    assert not found["is_cut"]


def test_lineage_goes_backward_from_a_signal_of_an_iteration_to_the_signal_that_started_the_root() -> None:
    views = view_of(etl(foreach("loop", 1, TELLS)))

    found = views.read(lineage.of_signal, ("told", 1), Direction.BACKWARD, 20)

    assert edges(found) == {
        ("signal orders 1", "STARTED", "instance etl 1"),
        ("instance etl 1", "LAUNCHED", f"instance {LOOP} 1"),
        (f"instance {LOOP} 1", "PUBLISHED", "signal told 1"),
    }
    assert {one["id"]: one["distance"] for one in found["nodes"]}["signal orders 1"] == -3


def test_lineage_goes_through_subworkflows_and_rounds_and_those_that_are_not_waited_for() -> None:
    engine = Engine()
    engine.push(tree(TELLS, workflow_id="lowest"))
    engine.push(tree(foreach("loop", 1, subworkflow("call", "lowest", sync=False)), workflow_id="below"))
    engine.push(tree(rounds("again", 1), subworkflow("sub", "below"), workflow_id="etl"))
    engine.start("etl")
    views = view_of(engine)

    found = forward(views)
    back = views.read(lineage.of_signal, ("told", 1), Direction.BACKWARD, 20)

    again = inline_id(ChildKind.WHILE, "etl/1", "again")
    inner = inline_id(ChildKind.FOREACH, "below/1", "loop")
    path = {
        ("instance etl 1", "LAUNCHED", "instance below 1"),
        ("instance below 1", "LAUNCHED", f"instance {inner} 1"),
        (f"instance {inner} 1", "LAUNCHED", "instance lowest 1"),
        ("instance lowest 1", "PUBLISHED", "signal told 1"),
    }
    assert edges(found) == {*path, ("instance etl 1", "LAUNCHED", f"instance {again} 1")}
    assert edges(back) == path


def test_a_signal_of_the_last_of_many_iterations_is_reached_and_the_rest_is_said_to_be_cut() -> None:
    last = {"step": {"id": "last", "type": "NoOp", "transition": {"successors": {"tells": f"i == {2 * CHILDREN_MAX}"}}}}
    found = forward(view_of(etl(foreach("loop", 2 * CHILDREN_MAX, last, TELLS))))

    assert {f"instance {LOOP} {2 * CHILDREN_MAX}", "signal told 1"} <= ids(found)
    assert len([one for one in found["edges"] if one["type"] == "LAUNCHED"]) == CHILDREN_MAX
    assert [one["id"] for one in found["nodes"] if one["is_cut"]] == ["instance etl 1"]


def test_children_leave_room_for_the_signals_that_they_announced() -> None:
    views = view_of(etl(foreach("loop", 20, tells_of("i"))))

    found = forward(views, nodes_max=9)

    assert len(found["nodes"]) == 9
    assert len([node for node in ids(found) if node.startswith("signal told")]) == 4
    assert found["is_cut"]


def test_a_signal_in_the_name_of_an_iteration_that_never_was_makes_no_child() -> None:
    engine = etl(foreach("loop", 1, TELLS))
    source = f'{{"workflow_id": "{LOOP}", "workflow_instance_id": 77, "workflow_run_id": 1, "step_id": "tells"}}'
    engine.send(SIGNALS, "told", c.AnnounceSignal("told", "forged", '{"n":9}', "{}", None, source))

    found = forward(view_of(engine))

    assert f"instance {LOOP} 77" not in ids(found)
    assert f"instance {LOOP} 1" in ids(found)
