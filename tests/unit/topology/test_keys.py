"""Keys are input: a record whose key is not of the form of its stream is a dead letter, and nothing else."""

from typing import Any

import pytest

from kapelle.processors.keys import INSTANCE_MAX, KeyUnreadable, ids_of, run_key
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS, RUN_INTERNAL, SIGNAL_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, DeadLetter, Report, RestartPolicy, Stage
from kapelle.testing.engine import Engine
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.log import Place
from kapelle.topology.settings import RecordAt

BAD_KEYS = ["v", "v/", "/1", "", "v/0", "v/-1", "v/+1", "v/01", "v/ 1", "v/1_0", "v/\u0661", "v/1.0", "a/b/1", "v/1/2"]
TOO_LARGE = f"v/{INSTANCE_MAX + 1}"
RESTART = c.RestartRun("r-1", "ann", RestartPolicy.RESTART_FROM_BEGINNING)
REPORT = c.ReportTask("token", "load", "w", Report.SUCCEEDED)


def letters(engine: Engine) -> list[DeadLetter]:
    codec, place = Codec(engine.topology.catalog()), Place(engine.topology.topic(DEAD_LETTERS), 0)
    found = [codec.decode(record.value or b"") for record in engine.runtime.log.read(place, 0, 1_000)]
    return [one for one in found if isinstance(one, DeadLetter)]


@pytest.mark.parametrize("command", [RESTART, REPORT, c.ActOnStep("r-2", "ann", "load", Action.STOP, "")])
@pytest.mark.parametrize("key", [*BAD_KEYS, TOO_LARGE, "v/" + "9" * 5_000])
def test_a_command_to_a_run_under_a_key_that_is_none_is_a_dead_letter(key: str, command: Any) -> None:
    engine = Engine()

    engine.send(RUN_COMMANDS, key, command)

    [letter] = letters(engine)
    assert (letter.stage, letter.error, letter.topic) == (Stage.DECODE, "UnfitRecord", "test.runs.commands")
    assert "Expected a workflow id, a slash, and the number of an instance as the key" in letter.reason
    assert engine.events(RUN_EVENTS) == []


def test_the_largest_number_of_an_instance_is_a_key() -> None:
    engine = Engine()

    engine.send(RUN_COMMANDS, run_key("v", INSTANCE_MAX), RESTART)

    assert letters(engine) == []
    assert [one.request_id for one in engine.refusals()] == ["r-1"]


@pytest.mark.parametrize("key", [*BAD_KEYS, TOO_LARGE])
def test_a_key_that_is_taken_apart_is_one_that_can_be_made_again(key: str) -> None:
    assert ids_of("etl/12") == ("etl", 12)
    assert run_key(*ids_of(run_key("etl", INSTANCE_MAX))) == run_key("etl", INSTANCE_MAX)
    with pytest.raises(KeyUnreadable, match="Expected a workflow id"):
        ids_of(key)


@pytest.mark.parametrize(
    ("stream", "key", "command"),
    [
        (SIGNAL_INTERNAL, "other", c.AnnounceSignal("orders", "1", "{}", "{}", None, "{}")),
        (RUN_INTERNAL, "etl/2", c.StartRun("etl", 1, 1, "r", 1, "{}", "{}", "{}", "c", "{}", "{}", "{}")),
    ],
)
def test_a_key_that_is_not_that_of_its_value_is_a_dead_letter(stream: Stream, key: str, command: Any) -> None:
    engine = Engine()

    engine.send(stream, key, command)

    [letter] = letters(engine)
    assert letter.stage is Stage.DECODE
    assert f"names, but found {key!r}" in letter.reason


@pytest.mark.parametrize("number", [2**63 - 1, 2**53, 0])
@pytest.mark.parametrize("make", ["terminate", "unblock"])
def test_commands_for_instances_up_to_any_number_are_carried_out(make: str, number: int) -> None:
    engine = Engine()
    engine.push(
        {"properties": {"owner": "o"}, "workflow": {"id": "etl", "steps": [{"step": {"id": "a", "type": "x"}}]}}
    )
    engine.start("etl")
    commands: dict[str, Any] = {
        "terminate": c.TerminateInstances("r-1", "ann", Action.STOP, "", upto_instance_id=number),
        "unblock": c.UnblockInstances("r-1", "ann", "", upto_instance_id=number),
    }

    engine.send(WORKFLOW_COMMANDS, "etl", commands[make])

    assert letters(engine) == []
    assert engine.runs("etl")[0].status.value == ("STOPPED" if make == "terminate" and number > 0 else "IN_PROGRESS")


def test_a_request_for_a_negative_number_is_refused() -> None:
    engine = Engine()

    engine.send(WORKFLOW_COMMANDS, "etl", c.UnblockInstances("r-1", "ann", "", upto_instance_id=-(2**63)))

    assert letters(engine) == []
    assert [(one.request_id, one.message) for one in engine.refusals()] == [
        ("r-1", "Expected upto_instance_id of at least 0, but found -9223372036854775808")
    ]


def test_a_record_that_the_operator_names_is_put_aside_and_those_after_it_are_folded() -> None:
    engine = Engine()
    engine.runtime.member._fold.set_aside = frozenset({RecordAt("test.runs.commands", 0, 0)})

    engine.send(RUN_COMMANDS, "etl/1", RESTART)
    engine.send(RUN_COMMANDS, "etl/1", c.RestartRun("r-2", "ann", RestartPolicy.RESTART_FROM_BEGINNING))

    [letter] = letters(engine)
    assert (letter.offset, letter.reason) == (0, "The operator has set this record aside")
    assert [one.request_id for one in engine.refusals()] == ["r-2"]
