"""The contracts of public topics in a registry: registered once, checked against every version, written by id."""

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.processors.publisher.streams import INSTANCE_CHANGES
from kapelle.processors.wiring import WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.registry import PublicSchemas, RegistryClient, RegistryServer
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.sources.errors import RegistryAway, RegistryRefused
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.page import topology
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Counted
from tests.proof.processors import topology as proof

SUBJECT = "kapelle.public.instances.changes-value"
DEFINITION = (
    '{"properties": {"owner": "ann"}, "workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}'
)


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def kapelle(*arguments: str) -> tuple[int, str]:
    """What a command ends with, and all that it says."""
    result = CliRunner().invoke(cli, list(arguments))
    return result.exit_code, result.output


def changed(field: dict[str, Any]) -> str:
    """The contract of instances with a field more, as an earlier release could have had it."""
    schema = json.loads(c.InstanceStatusChange.SCHEMA)
    return json.dumps({**schema, "fields": [*schema["fields"], field]})


def test_contracts_that_are_not_registered_are_told_with_the_command_that_registers_them(
    server: RegistryServer,
) -> None:
    code, told = kapelle("schemas", "check", "--registry", server.url)

    assert code == 4
    assert f"{SUBJECT}: not registered" in told
    assert "kapelle schemas apply" in told
    assert server.subjects.subjects() == []


def test_applying_registers_every_public_topic_for_changes_that_nobody_notices(server: RegistryServer) -> None:
    code, told = kapelle("schemas", "apply", "--registry", server.url)

    assert (code, kapelle("schemas", "check", "--registry", server.url)[0]) == (0, 0)
    assert f"{SUBJECT}: registered, id" in told
    assert len(server.subjects.subjects()) == 7
    assert {server.subjects.level(one) for one in server.subjects.subjects()} == {"FULL_TRANSITIVE"}


def test_applying_twice_is_applying_once(server: RegistryServer) -> None:
    kapelle("schemas", "apply", "--registry", server.url)

    code, _ = kapelle("schemas", "apply", "--registry", server.url)

    assert code == 0
    assert server.subjects.versions(SUBJECT) == [1]


def test_a_subject_that_may_change_so_that_readers_notice_is_told_and_mended(server: RegistryServer) -> None:
    kapelle("schemas", "apply", "--registry", server.url)
    server.subjects.set_level("BACKWARD", SUBJECT)

    code, told = kapelle("schemas", "check", "--registry", server.url)
    mended, _ = kapelle("schemas", "apply", "--registry", server.url)

    assert code == 4
    assert f"{SUBJECT}: registered, but free to change so that readers notice" in told
    assert (mended, server.subjects.level(SUBJECT), server.subjects.versions(SUBJECT)) == (0, "FULL_TRANSITIVE", [1])
    assert kapelle("schemas", "check", "--registry", server.url)[0] == 0


def test_a_change_that_breaks_readers_is_told_by_its_field_and_nothing_is_registered(server: RegistryServer) -> None:
    server.subjects.register(SUBJECT, changed({"name": "cost", "type": "long"}))

    code, told = kapelle("schemas", "apply", "--registry", server.url)

    assert code == 4
    assert f"{SUBJECT}: breaks earlier versions" in told
    assert "version 1: " in told
    assert "cost" in told
    assert server.subjects.subjects() == [SUBJECT]


def test_a_change_that_breaks_nobody_becomes_another_version(server: RegistryServer) -> None:
    server.subjects.register(SUBJECT, changed({"name": "cost", "type": "long", "default": 0}))

    code, _ = kapelle("schemas", "apply", "--registry", server.url)

    assert code == 0
    assert server.subjects.versions(SUBJECT) == [1, 2]


def test_without_a_registry_it_is_said_how_to_name_one() -> None:
    code, told = kapelle("schemas", "check")

    assert code == 2
    assert "--registry" in told


def test_a_registry_that_does_not_answer_ends_the_command_with_its_code() -> None:
    code, told = kapelle("schemas", "check", "--registry", "http://127.0.0.1:9")

    assert code == 5
    assert "Expected the registry to answer" in told


def test_what_answers_otherwise_is_no_registry(server: RegistryServer) -> None:
    with RegistryClient(f"{server.url}/schemas/types/nowhere") as client:
        assert client.versions("orders-value") == []
        with pytest.raises(RegistryAway, match="Expected the registry to take a version"):
            client.register("orders-value", c.InstanceStatusChange.SCHEMA)


def test_processors_register_nothing(server: RegistryServer) -> None:
    with RegistryClient(server.url) as client, pytest.raises(RegistryRefused, match="kapelle schemas apply"):
        PublicSchemas(topology()).framing(client)

    assert server.subjects.subjects() == []


def test_public_records_are_written_by_their_ids_and_read_by_any_reader_of_avro(server: RegistryServer) -> None:
    whole = topology(partitions=1)
    with RegistryClient(server.url) as client:
        PublicSchemas(whole).apply(client)
        framing = PublicSchemas(whole).framing(client)
    settings = EmbeddedSettings(member=MemberSettings(framing=framing))
    with EmbeddedRuntime(whole, MemoryStore(), settings) as runtime:
        runtime.publish(WORKFLOW_COMMANDS, "w", c.PushVersion("p", "ann", DEFINITION))
        runtime.publish(WORKFLOW_COMMANDS, "w", c.StartInstances("ann", (c.Start("s"),)))
        runtime.step_until_idle()

        changes = [record.value or b"" for record in runtime.read(INSTANCE_CHANGES, 0, 0, 10)]
        events = [record.value or b"" for record in runtime.read(WORKFLOW_EVENTS, 0, 0, 10)]

    assert [value[:1] for value in changes] == [b"\x00"] * 3
    assert {value[:2] for value in events} == {b"\xc3\x01"}
    schema = fastavro.parse_schema(json.loads(server.subjects.by_id(int.from_bytes(changes[0][1:5], "big"))))
    found: list[Any] = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in changes]
    assert [one["status"] for one in found] == ["CREATED", "IN_PROGRESS", "SUCCEEDED"]
    codec = Codec(whole.catalog(), framing)
    assert [codec.decode(value).to_avro() for value in changes] == [value[5:] for value in changes]


def test_what_earlier_releases_wrote_by_other_ids_is_read(server: RegistryServer) -> None:
    whole, subject = proof("all", prefix="proof", partitions=1), "proof.counting.events-value"
    now = json.loads(Counted.SCHEMA)
    more = [*now["fields"], {"name": "cost", "type": "long", "default": 0}]
    for earlier in ({**now, "fields": more}, {**now, "doc": "In other words."}):
        server.subjects.register(subject, json.dumps(earlier))
    with RegistryClient(server.url) as client:
        PublicSchemas(whole).apply(client)
        codec = Codec(whole.catalog(), PublicSchemas(whole).framing(client))
        numbers = [one.id for one in client.versions(subject)]
    value = Counted("t1", "word", 3)
    written = codec.encode(value)

    found = [
        codec.decode(b"\0" + number.to_bytes(4, "big") + written[5:] + cost)
        for number, cost in zip(numbers, (b"\2", b"", b""), strict=True)
    ]

    assert found == [value] * 3
    assert int.from_bytes(written[1:5], "big") == numbers[-1]
