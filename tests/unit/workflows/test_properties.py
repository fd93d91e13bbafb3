"""Changes of properties and tags."""

import json

from kapelle.schemas import contracts as c
from tests.unit.workflows.world import NOW_MS, World, only


def pushed() -> World:
    world = World()
    world.push(properties={"owner": "ann", "step_concurrency": 5, "alerting": {"emails": ["a@b.c"]}})
    return world


def change(world: World, text: str, request_id: str = "") -> list[object]:
    return world.do(c.ChangeProperties(request_id or world.fresh(), "bob", text))


def test_a_change_keeps_what_it_does_not_speak_of() -> None:
    world = pushed()

    changed = only(c.PropertiesChanged, change(world, '{"description": "new"}'))

    assert changed.author == "bob"
    assert changed.changes == '{"description": "new"}'
    assert json.loads(changed.properties) == {
        "owner": "ann",
        "run_strategy": {"rule": "SEQUENTIAL", "workflow_concurrency": 1},
        "step_concurrency": 5,
        "alerting": {"emails": ["a@b.c"]},
        "description": "new",
    }


def test_a_push_resets_what_it_does_not_speak_of() -> None:
    world = pushed()

    changed = only(c.PropertiesChanged, world.push(properties={"description": "new"}))

    kept = json.loads(changed.properties)
    assert (kept["owner"], kept["description"]) == ("ann", "new")
    assert "step_concurrency" not in kept
    assert "alerting" not in kept


def test_a_repeated_change_does_not_undo_a_later_one() -> None:
    world = pushed()
    change(world, '{"description": "one"}', "first")
    change(world, '{"description": "two"}')

    only(c.CommandSettled, change(world, '{"description": "one"}', "first"))

    assert only(c.PropertiesChanged, change(world, '{"step_concurrency": 7}')).properties.count('"two"') == 1


def test_a_tag_tells_who_made_it_and_when() -> None:
    world = pushed()

    changed = only(c.PropertiesChanged, world.do(c.TagWorkflow("t", "bob", '"nightly"')))

    assert json.loads(changed.properties)["tags"] == [
        {"name": "nightly", "namespace": "PLATFORM", "creator": "bob", "created_at": NOW_MS}
    ]
    assert json.loads(changed.changes) == {"tag": {"add": "nightly"}}


def test_a_tag_of_the_same_name_takes_the_place_of_the_first() -> None:
    world = pushed()
    world.do(c.TagWorkflow("t", "bob", '{"name": "nightly", "weight": 1}'))

    changed = only(c.PropertiesChanged, world.do(c.TagWorkflow("u", "eve", '{"name": "nightly", "weight": 2}')))

    tags = json.loads(changed.properties)["tags"]
    assert [(tag["name"], tag["weight"], tag["creator"]) for tag in tags] == [("nightly", 2, "eve")]


def test_a_tag_is_removed_by_its_name() -> None:
    world = pushed()
    world.do(c.TagWorkflow("t", "bob", '"nightly"'))

    changed = only(c.PropertiesChanged, world.do(c.UntagWorkflow("u", "bob", "nightly")))

    assert "tags" not in json.loads(changed.properties)
    assert json.loads(changed.changes) == {"tag": {"remove": "nightly"}}


def test_a_tag_survives_a_push() -> None:
    world = pushed()
    world.do(c.TagWorkflow("t", "bob", '"nightly"'))

    changed = only(c.PropertiesChanged, world.push())

    assert [tag["name"] for tag in json.loads(changed.properties)["tags"]] == ["nightly"]


def test_a_run_carries_the_properties_of_the_time_at_which_it_was_started() -> None:
    world = pushed()
    world.start("a")
    world.start("b", runtime_tags='["urgent"]')
    change(world, '{"step_concurrency": 9}')

    world.end(1)

    first, second = (json.loads(told.run_properties) for _, told in world.sent_of(c.StartRun))
    expected = {
        "owner": "ann",
        "step_concurrency": 5,
        "step_concurrency_snapshot": 1,
        "alerting": {"emails": ["a@b.c"]},
    }
    assert first == {**expected, "runtime_tags": []}
    assert second == {**expected, "runtime_tags": ["urgent"]}


def test_history_rebuilds_every_snapshot() -> None:
    world = pushed()
    change(world, '{"description": "one"}')
    world.do(c.TagWorkflow("t", "bob", '"nightly"'))
    world.do(c.UntagWorkflow("u", "bob", "nightly"))

    assert world.replayed() == world.state.fingerprint()


# The limit of steps -------------------------------------------------------------------------------------------------


def limits(world: World) -> list[tuple[str, int | None, int]]:
    """What `permits` was told: the author, how many steps may run, and of which properties that is."""
    told = world.sent_of(c.LimitWorkflow)
    assert {key for key, _ in told} <= {"workflow/etl"}
    return [(limit.author, limit.max, limit.snapshot) for _, limit in told]


def test_permits_is_told_of_a_step_concurrency_and_of_each_change() -> None:
    world = pushed()

    change(world, '{"step_concurrency": 9}')
    change(world, '{"reset_step_concurrency": true}')
    world.push(properties={"step_concurrency": 3})
    world.push(properties={"description": "a push resets what it does not speak of"})

    assert limits(world) == [("ann", 5, 1), ("bob", 9, 2), ("bob", None, 3), ("ann", 3, 4), ("ann", None, 5)]


def test_permits_is_not_told_of_properties_with_the_same_step_concurrency() -> None:
    world = pushed()

    change(world, '{"description": "new"}')
    world.do(c.TagWorkflow("t", "bob", '"nightly"'))
    world.do(c.UntagWorkflow("u", "bob", "nightly"))
    world.push(properties={"step_concurrency": 5})
    world.push(properties=None)
    change(world, '{"step_concurrency": 6}')

    assert limits(world) == [("ann", 5, 1), ("bob", 6, 6)]


def test_a_workflow_without_step_concurrency_tells_permits_nothing() -> None:
    world = World()
    world.push()
    change(world, '{"description": "new"}')
    world.do(c.DeleteWorkflow("d", "ann"))

    assert limits(world) == []


def test_a_deleted_workflow_limits_no_steps_and_the_numbers_of_its_properties_go_on() -> None:
    world = pushed()
    change(world, '{"step_concurrency": 9}')

    world.do(c.DeleteWorkflow("d", "bob"))
    world.push(properties={"owner": "ann", "step_concurrency": 9})
    world.start("a")

    assert limits(world) == [("ann", 5, 1), ("bob", 9, 2), ("bob", None, 3), ("ann", 9, 4)]
    [(_, start)] = world.sent_of(c.StartRun)
    assert json.loads(start.run_properties)["step_concurrency_snapshot"] == 4
    assert world.replayed() == world.state.fingerprint()


def test_a_workflow_that_is_deleted_twice_uses_no_number_again() -> None:
    world = pushed()
    for number in range(2):
        world.do(c.DeleteWorkflow(f"d{number}", "bob"))
        world.push(properties={"owner": "ann", "step_concurrency": 5})

    numbers = [number for _, _, number in limits(world)]
    assert numbers == [1, 2, 3, 4, 5]


def test_properties_cannot_be_changed_between_a_deletion_and_the_next_push() -> None:
    world = pushed()
    world.do(c.DeleteWorkflow("d", "bob"))

    refused = only(c.CommandRefused, change(world, '{"step_concurrency": 2}'))
    nameless = only(c.CommandRefused, world.push(properties={"step_concurrency": 2}))

    assert refused.refusal == "NOT_FOUND"
    assert nameless.errors == ("properties.owner: Expected the owner of a new workflow, but found nothing",)


def test_a_run_without_step_concurrency_carries_no_number_of_properties() -> None:
    world = World()
    world.push()
    world.start("a")

    [(_, start)] = world.sent_of(c.StartRun)
    assert "step_concurrency_snapshot" not in json.loads(start.run_properties)


def test_a_restarted_run_carries_the_number_of_the_properties_of_its_first_run() -> None:
    world = pushed()
    world.start("a")
    change(world, '{"step_concurrency": 9}')
    world.fail(1)
    world.restart(1)

    [_, (_, start)] = world.sent_of(c.StartRun)
    carried = json.loads(start.run_properties)
    assert (carried["step_concurrency"], carried["step_concurrency_snapshot"]) == (5, 1)
