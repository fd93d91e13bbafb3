"""The laws that `kapelle verify` checks find tables in which permits are counted wrongly."""

from msgspec.structs import replace

from kapelle.processors.draft import Draft
from kapelle.processors.permits import PermitTables, permits
from kapelle.processors.runs import runs
from kapelle.processors.runs.tables import Runs
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.runs.flows import S, pushed, step, succeed
from tests.unit.runs.test_permits import limit

KEY = "tag/gpu"


def waiting() -> RunHandle:
    """Of three steps, one holds the only permit and two wait."""
    engine = pushed(*(step(name, tags=["gpu"]) for name in "abc"))
    limit(engine, "gpu", 1)
    return engine.start("flow")


def permit_tables(engine: Engine) -> PermitTables:
    """Tables that can be changed, while the engine keeps its own."""
    tables: PermitTables = Draft(permits, KEY, engine.state("permits", KEY)).state
    return tables


def run_tables(run: RunHandle) -> Runs:
    tables: Runs = Draft(runs, run.key, run.engine.state("runs", run.key)).state
    return tables


def broken_permits(tables: PermitTables) -> list[str]:
    return [problem for law in permits.laws for problem in law(tables)]


def broken_runs(tables: Runs) -> list[str]:
    return [problem for law in runs.laws for problem in law(tables)]


def test_the_laws_hold_while_attempts_hold_permits_wait_and_end() -> None:
    run = waiting()

    for name in "abc":
        assert broken_permits(permit_tables(run.engine)) == []
        assert broken_runs(run_tables(run)) == []
        succeed(run, name)

    assert set(run.steps.values()) == {S.SUCCEEDED}
    assert broken_permits(permit_tables(run.engine)) == []


def test_a_permit_that_is_counted_without_a_holder_is_found() -> None:
    tables = permit_tables(waiting().engine)
    row = tables.limits.get((KEY,))
    assert row is not None

    tables.limits.put((KEY,), replace(row, held=2))

    assert broken_permits(tables) == [f"{KEY}: 2 permits are counted as held, but 1 attempts hold one"]


def test_an_attempt_that_waits_without_a_place_is_found() -> None:
    tables = permit_tables(waiting().engine)
    place, _ = next(iter(tables.queue.prefix((KEY,))))

    tables.queue.delete(place)

    [problem] = broken_permits(tables)
    assert problem.startswith(
        f"{KEY}: (0, 0, 2, 0) are counted as waiting by criticality, but (0, 0, 2, 0) wait, in (0, 0"
    )


def test_attempts_that_wait_while_there_is_room_are_found() -> None:
    tables = permit_tables(waiting().engine)
    row = tables.limits.get((KEY,))
    assert row is not None

    tables.limits.put((KEY,), replace(row, max=2))

    assert broken_permits(tables) == [f"{KEY}: attempts wait although 1 of 2 permits are held"]


def test_an_attempt_that_is_over_and_holds_a_permit_is_found() -> None:
    run = waiting()
    tables = run_tables(run)
    row = tables.steps.get((run.key, "a"))
    assert row is not None

    tables.steps.put((run.key, "a"), replace(row, status=S.SUCCEEDED))

    assert broken_runs(tables) == ["step 'a' of flow/1/run 1, attempt 1 is SUCCEEDED, but holds 1 of 1 permits"]


def test_an_attempt_that_has_started_without_a_permit_is_found() -> None:
    run = waiting()
    tables = run_tables(run)
    row = tables.steps.get((run.key, "b"))
    assert row is not None

    tables.steps.put((run.key, "b"), replace(row, status=S.STARTING))

    assert broken_runs(tables) == ["step 'b' of flow/1/run 1, attempt 1 is STARTING, but holds 0 of 1 permits"]
