"""What others need to know of the public topics: an AsyncAPI document that is up to date, and the rights to ask for."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kapelle.cli.acls import READ, WRITE, Role, acls
from kapelle.cli.all_commands import cli
from kapelle.cli.asyncapi import as_yaml, document
from kapelle.schemas import contracts as c
from kapelle.topology.page import topology

PAGE = Path(__file__).parents[3] / "docs" / "asyncapi.yaml"


def test_the_document_is_what_the_streams_say() -> None:
    message = "the public topics have changed: python -m kapelle.cli.asyncapi docs/asyncapi.yaml"
    assert PAGE.read_text() == as_yaml(document(topology())), message


def test_every_reference_of_the_document_leads_somewhere() -> None:
    whole = yaml.safe_load(PAGE.read_text())

    references = [part.split('"')[0] for part in json.dumps(whole).split('"$ref": "#/')[1:]]

    assert len(references) > 10
    for reference in references:
        found = whole
        for name in reference.split("/"):
            found = found[name]
        assert found != {}


def test_each_public_topic_is_a_channel_with_its_contract_and_kafka_s_settings() -> None:
    channel = document(topology(prefix="shop", partitions=5))["channels"]["public-instances-state"]

    assert channel["address"] == "shop.public.instances.state"
    assert list(channel["messages"]) == ["InstanceStatusChange"]
    kafka = channel["bindings"]["kafka"]
    assert (kafka["partitions"], kafka["topicConfiguration"]) == (5, {"cleanup.policy": ["compact"]})


def test_the_schema_of_a_message_is_that_of_its_contract() -> None:
    message = document(topology())["components"]["messages"]["SignalVerdict"]

    assert message["payload"]["schema"] == json.loads(c.SignalVerdict.SCHEMA)


def test_the_command_shows_the_document_of_a_prefix() -> None:
    result = CliRunner().invoke(cli, ["schemas", "asyncapi", "--prefix", "shop"])

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["channels"]["signals"]["address"] == "shop.signals"


def test_subscribers_may_read_public_topics_and_nothing_else() -> None:
    found = [one for one in acls(topology(prefix="shop")) if one.role is Role.SUBSCRIBERS]

    assert {operation for one in found for operation in one.operations} == set(READ)
    assert {one.name for one in found if one.resource == "TOPIC"} == {"shop.public.", "shop.schemas"}


def test_only_processors_may_write_public_topics() -> None:
    writers = {
        one.role
        for one in acls(topology(prefix="shop"))
        if "WRITE" in one.operations
        and one.resource == "TOPIC"
        and (one.name == "shop.public.steps.changes" or (one.prefixed and "shop.public.".startswith(one.name)))
    }

    assert writers == {Role.PROCESSORS}


def test_the_api_may_write_commands_of_every_kind() -> None:
    rights = [acl for acl in acls(topology(prefix="shop")) if acl.role is Role.API and acl.operations == WRITE]

    topics = {acl.name for acl in rights if acl.resource == "TOPIC"}
    assert topics == {f"shop.{name}" for name in ("workflows.commands", "runs.commands", "permits.commands", "signals")}


def test_announcers_may_write_signals_alone() -> None:
    (only,) = [one for one in acls(topology(prefix="shop")) if one.role is Role.ANNOUNCERS]

    assert (only.name, only.prefixed, only.operations) == ("shop.signals", False, WRITE)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text", "subscribers TOPIC             shop.public.*"),
        ("commands", "--operation Read --operation Describe --topic shop.public. --resource-pattern-type prefixed"),
        ("json", '"role": "subscribers"'),
    ],
)
def test_rights_are_shown_as_lines_commands_or_data(form: str, expected: str) -> None:
    result = CliRunner().invoke(cli, ["topics", "acls", "--prefix", "shop", "-o", form])

    assert result.exit_code == 0
    assert expected in result.stdout
