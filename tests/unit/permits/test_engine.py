"""With the whole engine: more attempts than one decision admits are all admitted, and nothing is left of them."""

from kapelle.processors.permits.admission import ADMITTED_MAX
from kapelle.processors.permits.tables import Limit
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing.engine import RunHandle
from tests.property.signals.replaying import differing
from tests.unit.permits.world import KEY
from tests.unit.runs.flows import noop, pushed
from tests.unit.runs.test_large_fans import loop

MANY = 2 * ADMITTED_MAX + 7


def crowded() -> RunHandle:
    """So many iterations wait for a tag of which none may run."""
    engine = pushed(loop(MANY, noop("inner", tags=["gpu"])))
    engine.send(PERMIT_COMMANDS, KEY, c.SetLimit("set", "ann", 0))
    run = engine.start("flow")
    assert limit_of(run).waiting == (0, 0, MANY, 0)
    return run


def limit_of(run: RunHandle) -> Limit:
    row: Limit | None = run.engine.state("permits", KEY).limits.get((KEY,))
    assert row is not None
    return row


def test_a_removed_limit_lets_all_go_on_without_advancing_the_clock() -> None:
    run = crowded()

    run.engine.send(PERMIT_COMMANDS, KEY, c.RemoveLimit("remove", "ann"))

    assert run.status is InstanceStatus.SUCCEEDED
    assert (limit_of(run).held, limit_of(run).waiting) == (0, (0, 0, 0, 0))
    assert any(isinstance(event, c.AdmissionsLeft) for event in run.engine.events(PERMIT_EVENTS, KEY))
    assert differing(run.engine) == []


def test_the_stop_of_a_run_leaves_nobody_in_the_queue() -> None:
    run = crowded()

    run.stop()

    assert run.status is InstanceStatus.STOPPED
    assert (limit_of(run).held, limit_of(run).waiting) == (0, (0, 0, 0, 0))
    assert differing(run.engine) == []
