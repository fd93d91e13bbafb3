"""The product on an embedded log, fed with records that nobody would write, and what must still be true of it."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from kapelle.processors.streams import Keep, Stream
from kapelle.processors.wiring import RUN_COMMANDS, TASKS
from kapelle.schemas import Codec, SchemaError
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import DeadLetter, Report, Stage
from kapelle.testing.engine import Engine
from kapelle.topology.build import partition_of
from kapelle.topology.log import Place
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.lookup import folded
from kapelle.topology.replay.moments import Moment
from kapelle.topology.settings import OnBug
from kapelle.topology.tables import MemoryStore
from tests.property.fuzz.records import Made, Making

PARTITIONS: Final = 2
LETTER_MAX: Final = 2_000_000
STEP: Final = {"step": {"id": "load", "type": "work", "params": {"x": {"type": "LONG", "value": 1}}}}
ETL: Final = {
    "properties": {"owner": "o", "run_strategy": "PARALLEL"},
    "workflow": {
        "id": "etl",
        "params": {"n": {"type": "LONG", "value": 1}},
        "steps": [
            {"step": {**STEP["step"], "transition": {"successors": {"join": "true"}}}},
            {"step": {"id": "join", "type": "NoOp"}},
        ],
        "signal_triggers": [{"definitions": {"orders": {"match_params": {}}}}],
    },
}
WAITING: Final = {
    "properties": {"owner": "o", "run_strategy": {"rule": "SEQUENTIAL"}},
    "workflow": {"id": "other", "steps": [STEP]},
}


class World(Engine):
    """An engine with two workflows, some runs, and a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        super().__init__(partitions=PARTITIONS, same_cycle=self.chance.random() < 0.7)
        # What a processor's own code raises is put aside here, so that one failing test names all that it found.
        self.runtime.member._fold.on_bug = OnBug.DEAD_LETTER
        for definition in (ETL, WAITING):
            self.push(definition)
        for _ in range(3):
            self.start("etl")
            self.start("other")
        texts = [json.dumps(ETL), json.dumps(WAITING)]
        self.words: dict[str, list[Any]] = {
            "workflow_id": ["etl", "etl", "other", "nobody"],
            "instance_id": [1, 2, 3, 4, 5],
            "run_id": [1, 1, 2, 3],
            "attempt": [1, 2],
            "iteration": [0, 1],
            "index": [0, 1],
            "sequence": [1, 2, 3],
            "version": [1, 2, "1", "latest", "active"],
            "step_id": ["load", "load", "join", "gone"],
            "trigger_id": ["t", self._trigger()],
            "name": ["orders", "done", "orders"],
            "definition": [*texts, texts[0], json.dumps(ETL["workflow"]), json.dumps(WAITING["workflow"])],
            "request_id": [f"fuzz-{n}" for n in range(40)],
            "author": ["ann"],
            "worker": ["w"],
            "token": [handle.task.token for handle in self.tasks()],
            "params": ["{}", '{"n":1}', '{"n":"a"}'],
            "payload": ["{}"],
            "source": ["{}", '{"request_id":"r"}'],
            "initiator": ['{"type":"manual"}', '{"type":"MANUAL"}', '{"type":"signal"}', '{"type":"time"}'],
            "run_params": ["{}", '{"n":{"type":"LONG","value":7}}'],
            "step_run_params": ["{}", '{"load":{"x":{"type":"LONG","value":7}}}'],
            "runtime_tags": ["[]"],
            "artifacts": ["{}"],
            "run_properties": ["{}"],
            "restart": ['{"policy":"RESTART_FROM_BEGINNING"}', '{"policy":"RESTART_FROM_INCOMPLETE"}'],
            "match": ["[]"],
            "type": ["work"],
        }
        self.making = Making(self.chance, self._codec, self.words)
        self.inputs = [s for s in self._read() if s.keep is not Keep.FOR_EVER]
        self.histories = [s for s in self._read() if s.keep is Keep.FOR_EVER]

    def _read(self) -> Iterator[Stream]:
        return (stream for name, stream in self.topology.streams.items() if self.topology.readers[name])

    def _trigger(self) -> str:
        for shard in self.runtime.member.shards.values():
            if shard.processor.name == "triggers":
                for (key,), _row in shard.reader.triggers.prefix(()):
                    return str(key.partition("/")[2])
        return "t"

    def put(self, stream: Stream, made: Made) -> None:
        """Publish a record as it is, on the partition of its key or on any."""
        key, value, headers = made
        try:
            partition = partition_of((key or b"").decode(), self.topology.partitions(stream))
        except UnicodeDecodeError:
            partition = self.chance.randrange(PARTITIONS)
        self.runtime.publish_at(Place(self.topology.topic(stream), partition), (key, value, headers))

    def history(self, stream: Stream, partition: int) -> Iterator[tuple[str, Any]]:
        """What can be read of one partition of a stream."""
        at = 0
        while records := self.runtime.read(stream, partition, at, 1_000):
            for record in records:
                with suppress(SchemaError, UnicodeDecodeError):
                    yield (record.key or b"").decode(), self._codec.decode(record.value or b"")
            at = records[-1].offset + 1

    def feed(self, streams: list[Stream], count: int) -> None:
        """Publish this many records and fold them, with some time going by."""
        for _ in range(count):
            stream = self.chance.choice(streams)
            self.put(stream, self.making.record(stream))
        self.runtime.step_until_idle()
        self.words["token"] = [task.token for task in self.events(TASKS) if isinstance(task, c.Task)][-20:] or [""]
        self.advance(self.chance.choice((0, 0, 1, 1_000, 60_000)))

    # What must be true ------------------------------------------------------------------------------------------------

    def bugs(self) -> list[str]:
        """The letters about anything but a record that cannot be read: each is a defect."""
        return sorted(
            {f"{one.processor} {one.stage} {one.reason}" for one in self.letters() if one.stage is not Stage.DECODE}
        )

    def letters(self) -> Iterator[DeadLetter]:
        """All dead letters."""
        codec, place, at = Codec(self.topology.catalog(), record_bytes_max=LETTER_MAX), self._letters_place(), 0
        while records := self.runtime.log.read(place, at, 1_000):
            for record in records:
                letter = codec.decode(record.value or b"")
                assert isinstance(letter, DeadLetter)
                yield letter
            at = records[-1].offset + 1

    def _letters_place(self) -> Place:
        return Place(self.topology.dead_letters, 0)

    def violations(self) -> list[str]:
        """Where the tables are not the fold of the history."""
        live = self.runtime.member.shards
        history = StoredHistory(self.topology, self.runtime.log)
        folds = folded(history, list(live), Moment(passes_over=True), MemoryStore())
        done = [
            fold
            for fold, is_done in folds
            if is_done and fold.state.fingerprint() != live[fold.shard].state.fingerprint()
        ]
        return [f"the tables of {fold.shard} are not the fold of their history" for fold in done]

    def works(self) -> bool:
        """Whether a start of a workflow that nobody has touched still comes to its end."""
        name = f"healthy-{self.chance.randrange(10**9)}"
        self.push({"properties": {"owner": "o"}, "workflow": {"id": name, "steps": [STEP]}})
        run = self.start(name)
        task = next(one for one in self.events(TASKS) if isinstance(one, c.Task) and one.workflow_id == name)
        self.send(RUN_COMMANDS, f"{name}/1", c.ReportTask(task.token, "load", "w", Report.SUCCEEDED))
        return run.status is c.InstanceStatus.SUCCEEDED
