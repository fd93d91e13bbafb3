"""Properties: snapshots, changes by push and by update, and what becomes of the one under the other."""

import json

import pytest

from kapelle.processors.definitions import (
    DefinitionRefused,
    Properties,
    PropertiesChange,
    Push,
    Rule,
    RunStrategy,
    Tag,
    TagNamespace,
    merged_properties,
    parse_push,
    parse_tag,
)
from tests.unit.definitions.samples import FULL, text_of

CURRENT = Properties(
    owner="ann",
    owner_extra={"team": "data"},
    access_control={"writers": ["bob"]},
    run_strategy=RunStrategy(Rule.PARALLEL, 7),
    step_concurrency=40,
    alerting={"emails": ["ann@example.com"]},
    alerting_disabled=True,
    description="nightly",
    tags=(Tag("nightly"),),
)


def pushed(properties: dict[str, object]) -> PropertiesChange:
    push: Push = parse_push(text_of({**FULL, "properties": properties}))
    assert push.properties is not None
    return push.properties


def update(**changes: object) -> PropertiesChange:
    return PropertiesChange.parse(json.dumps(changes))


@pytest.mark.parametrize(
    ("written", "strategy"),
    [
        ("parallel", RunStrategy(Rule.PARALLEL, 20)),
        ("STRICT_SEQUENTIAL", RunStrategy(Rule.STRICT_SEQUENTIAL, 1)),
        (5, RunStrategy(Rule.PARALLEL, 5)),
        ({"rule": "Last_Only"}, RunStrategy(Rule.LAST_ONLY, 1)),
        ({"rule": "PARALLEL", "workflow_concurrency": 1000}, RunStrategy(Rule.PARALLEL, 1000)),
        ({"rule": "FIRST_ONLY", "workflow_concurrency": 1}, RunStrategy(Rule.FIRST_ONLY, 1)),
        ({}, RunStrategy(Rule.SEQUENTIAL, 1)),
        (None, RunStrategy(Rule.SEQUENTIAL, 1)),
    ],
)
def test_a_run_strategy_is_a_rule_a_number_or_an_object(written: object, strategy: RunStrategy) -> None:
    change = pushed({"owner": "ann", "run_strategy": written})

    assert merged_properties(None, change, is_push=True).run_strategy == strategy


def test_the_first_push_needs_an_owner() -> None:
    with pytest.raises(DefinitionRefused) as refused:
        merged_properties(None, pushed({"description": "nobody's"}), is_push=True)

    assert str(refused.value) == "properties.owner: Expected the owner of a new workflow, but found nothing"


def test_a_push_sets_strategy_step_concurrency_and_alerting_back_and_keeps_the_rest() -> None:
    made = merged_properties(CURRENT, pushed({"description": "daily"}), is_push=True)

    assert made == Properties(
        owner="ann",
        owner_extra={"team": "data"},
        access_control={"writers": ["bob"]},
        alerting_disabled=True,
        description="daily",
        tags=(Tag("nightly"),),
    )


def test_an_update_keeps_all_that_it_does_not_speak_of() -> None:
    made = merged_properties(CURRENT, update(owner="bob", alerting_disabled=False), is_push=False)

    assert made == Properties(
        owner="bob",
        access_control={"writers": ["bob"]},
        run_strategy=RunStrategy(Rule.PARALLEL, 7),
        step_concurrency=40,
        alerting={"emails": ["ann@example.com"]},
        description="nightly",
        tags=(Tag("nightly"),),
    )


@pytest.mark.parametrize(
    ("changes", "strategy"),
    [
        ({"run_strategy": {"workflow_concurrency": 9}}, RunStrategy(Rule.PARALLEL, 9)),
        ({"run_strategy": "PARALLEL"}, RunStrategy(Rule.PARALLEL, 7)),
        ({"run_strategy": "SEQUENTIAL"}, RunStrategy(Rule.SEQUENTIAL, 1)),
        ({"reset_run_strategy_rule": True}, RunStrategy(Rule.SEQUENTIAL, 1)),
        ({"reset_workflow_concurrency": True}, RunStrategy(Rule.PARALLEL, 20)),
        ({"step_concurrency": 1}, RunStrategy(Rule.PARALLEL, 7)),
    ],
)
def test_an_update_changes_a_run_strategy_part_by_part(changes: dict[str, object], strategy: RunStrategy) -> None:
    assert merged_properties(CURRENT, update(**changes), is_push=False).run_strategy == strategy


def test_an_update_can_set_the_step_concurrency_back() -> None:
    assert merged_properties(CURRENT, update(reset_step_concurrency=True), is_push=False).step_concurrency is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "the request: Expected a property or a reset flag, but found nothing to change"),
        ('{"owner": null}', "the request: Expected a property or a reset flag, but found nothing to change"),
        ("[]", "the request: Expected an object, but found []"),
        ('{"tags": ["a"]}', "tags: Expected no tags, which have requests of their own, but found tags"),
        ('{"step_concurrency": 0}', "step_concurrency: Expected an integer from 1 to 1,000, but found 0"),
        ('{"workflow_concurrency": 3}', "workflow_concurrency: Expected the key"),
        (
            '{"run_strategy": "PARALLEL", "reset_run_strategy_rule": true}',
            "reset_run_strategy_rule: Expected one of both, but found a reset and the new value PARALLEL",
        ),
        (
            '{"run_strategy": 3, "reset_workflow_concurrency": true}',
            "reset_workflow_concurrency: Expected one of both, but found a reset and the new value 3",
        ),
        (
            '{"step_concurrency": 3, "reset_step_concurrency": true}',
            "reset_step_concurrency: Expected one of both, but found a reset and the new value 3",
        ),
    ],
)
def test_an_update_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        PropertiesChange.parse(text)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_strategy": {"rule": "SEQUENTIAL", "workflow_concurrency": 2}}, "Expected 1, because the rule is SEQU"),
        ({"run_strategy": "LAST_ONLY", "reset_workflow_concurrency": True}, "no reset while the rule is LAST_ONLY"),
        ({"run_strategy": {"workflow_concurrency": 2}, "reset_run_strategy_rule": True}, "Expected 1, because"),
    ],
)
def test_an_update_is_refused_if_rule_and_concurrency_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DefinitionRefused, match=message):
        merged_properties(CURRENT, update(**changes), is_push=False)


def test_a_snapshot_survives_its_json() -> None:
    assert Properties.parse(CURRENT.json()) == CURRENT
    assert Properties.parse(Properties("ann").json()) == Properties("ann")


def test_the_json_of_a_snapshot_leaves_out_what_is_not_set() -> None:
    written = json.loads(Properties("ann").json())

    assert written == {"owner": "ann", "run_strategy": {"rule": "SEQUENTIAL", "workflow_concurrency": 1}}


def test_tags_are_added_replaced_and_taken_away_by_name() -> None:
    tag = parse_tag('{"name": "nightly", "namespace": "platform", "creator": "bob"}')

    made = CURRENT.with_tag(parse_tag('"extra"')).with_tag(tag)

    assert made.tags == (Tag("nightly", TagNamespace.PLATFORM, {"creator": "bob"}), Tag("extra"))
    assert made.without_tag("nightly").tags == (Tag("extra"),)
    assert Properties.parse(made.json()) == made


def test_a_wrong_tag_is_refused() -> None:
    with pytest.raises(DefinitionRefused, match=r"tag\.name: Expected a tag of letters"):
        parse_tag('"50%"')


def test_tags_of_a_push_are_added_to_those_there_are() -> None:
    made = merged_properties(CURRENT, pushed({"tags": ["nightly", "new"]}), is_push=True)

    assert made.tags == (Tag("nightly"), Tag("new"))
