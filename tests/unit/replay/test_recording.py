"""Recordings: the same code replays them, other code is found out, and nothing gets past the recording."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR
from kapelle.testing.replay import DecidedOtherwise, FoldedOtherwise, NotAllRecorded, Recording, assert_replays
from kapelle.topology.build import Topology
from kapelle.topology.page import PROCESSORS
from kapelle.topology.replay.exports import about, folded_facts, read_about, write_export
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.moments import Moment

FLOW = {
    "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
    "workflow": {"id": "etl", "steps": [{"step": {"id": "load", "type": "shell"}}]},
}


def recorded(path: Path) -> Recording:
    """A workflow with two starts, one of which is done."""
    engine = Recording()
    engine.push(FLOW)
    run = engine.start("etl")
    engine.advance(60_000)
    engine.start("etl")
    engine.task(run, "load").succeed()
    engine.save(path)
    return engine


def changed(name: str) -> tuple[Topology, Processor[Any]]:
    """The product's topology with a processor whose handlers can be replaced."""
    old = next(processor for processor in PROCESSORS if processor.name == name)
    new = Processor(name, tables=old.tables, inputs=old.inputs, events=old.events, outputs=old.outputs)
    new.deciders, new.appliers, new.ignored = dict(old.deciders), dict(old.appliers), dict(old.ignored)
    rest = [new if processor is old else processor for processor in PROCESSORS]
    return Topology(rest, prefix="test", partitions=1), new


def nothing(*_: object) -> tuple[Effect, ...]:
    """What is decided, or applied, by somebody who has forgotten."""
    return ()


def unchanged(*_: object) -> None:
    pass


def test_a_recording_is_replayed_by_the_code_that_made_it(tmp_path: Path) -> None:
    recorded(tmp_path / "etl.avro")

    assert_replays(tmp_path / "etl.avro")

    facts = read_about(tmp_path / "etl.avro")
    assert facts.inputs == 4


def test_a_decision_that_is_another_now_is_found_and_told(tmp_path: Path) -> None:
    recorded(tmp_path / "etl.avro")
    topology, workflows = changed("workflows")
    decide = workflows.deciders[c.StartInstances]

    def otherwise(message: Message[c.StartInstances], state: Any, now_ms: int) -> Iterator[Effect]:
        for effect in decide(message, state, now_ms):
            if isinstance(effect, Emit) and isinstance(effect.value, c.InstanceCreated):
                yield Emit(msgspec.structs.replace(effect.value, instance_id=7))
            else:
                yield effect

    workflows.deciders[c.StartInstances] = otherwise

    with pytest.raises(
        DecidedOtherwise, match=r"(?s)Expected event \d of workflows-0 to be.*instance_id=1.*instance_id=7"
    ):
        assert_replays(tmp_path / "etl.avro", topology=topology)


def test_a_decision_that_is_no_longer_made_is_found(tmp_path: Path) -> None:
    recorded(tmp_path / "etl.avro")
    topology, runs = changed("runs")
    runs.deciders[c.ReportTask] = nothing

    with pytest.raises(DecidedOtherwise, match=r"(?s)Expected event \d of .*but found\n  nothing"):
        assert_replays(tmp_path / "etl.avro", topology=topology)


def test_a_fold_that_comes_to_other_tables_is_found(tmp_path: Path) -> None:
    recorded(tmp_path / "etl.avro")
    topology, workflows = changed("workflows")
    workflows.appliers[c.InstanceEnded] = unchanged

    with pytest.raises(FoldedOtherwise, match="Expected the tables of workflows-0 to have the fingerprint"):
        assert_replays(tmp_path / "etl.avro", topology=topology)


def test_a_file_without_inputs_is_checked_by_its_fold_alone(tmp_path: Path) -> None:
    engine = recorded(tmp_path / "etl.avro")
    history = StoredHistory(engine.topology, engine.runtime.log)
    write_export(tmp_path / "events.avro", history, about(history, list(folded_facts(history, Moment())), "1"))
    topology, runs = changed("runs")
    runs.deciders[c.ReportTask] = nothing

    assert_replays(tmp_path / "events.avro", topology=topology)

    assert read_about(tmp_path / "events.avro").inputs == 0


def test_what_gets_past_the_recording_is_refused(tmp_path: Path) -> None:
    engine = Recording()
    engine.runtime.publish(WORKFLOW_COMMANDS, "etl", c.StartInstances(AUTHOR, (c.Start("s1"),)))
    engine.runtime.step_until_idle()

    with pytest.raises(NotAllRecorded, match=r"Expected all \d+ records of workflows\.commands to be sent with send"):
        engine.save(tmp_path / "etl.avro")
