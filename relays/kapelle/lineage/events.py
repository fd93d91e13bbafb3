"""Our history as OpenLineage tells it: jobs, their runs, and the datasets between them.

| ours | theirs |
|---|---|
| a workflow, a step of it | a job: `etl`, and `etl.load` |
| a run of an instance, an attempt of a step | a run, under an id that is made of what it is the run of |
| the name of a signal, a signal | a dataset, `signal/orders`, and a version of it |

1. An event of theirs is made of one event of ours and of nothing else: no clock, no memory. So whoever reads our
   history again tells the same once more, byte for byte.
2. A run has START, then what it reads and writes (RUNNING, OTHER), and one of COMPLETE, FAIL and ABORT.
3. A step that never began has no run.
4. The START of a child names the step that has started it, and the run at the top of the tree. Its other events do not:
   what they are made of does not tell. For the same reason a step names the run that it belongs to, and no root: the
   run may be that of a child.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID, uuid5

import msgspec
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    parent_run,
    processing_engine_run,
    tags_run,
)

from kapelle.processors.initiators import initiator_of
from kapelle.processors.parents import read_parent
from kapelle.processors.runs.states import COMPLETE, FAILED
from kapelle.processors.wiring import ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.topology.journal import Entry

VERSION: Final = version("kapelle")
PRODUCER: Final = f"urn:kapelle:{VERSION}"
INTEGRATION: Final = "KAPELLE"
IDS: Final = UUID("5d0f3f0e-8f0a-5c1e-9f43-3a6d2f1f7a10")  # our namespace among the hashes of others; never to change
TEXT_CHARS_MAX: Final = 4_000

set_producer(PRODUCER)  # of every event and facet that is made here

NEVER_BEGAN: Final = frozenset({StepStatus.UNSATISFIED, StepStatus.DISABLED, StepStatus.SKIPPED})
ENDS: Final = {
    InstanceStatus.SUCCEEDED: RunState.COMPLETE,
    InstanceStatus.FAILED: RunState.FAIL,
    InstanceStatus.TIMED_OUT: RunState.FAIL,
    InstanceStatus.STOPPED: RunState.ABORT,
}
STEP_ENDS: Final[Mapping[StepStatus, RunState]] = {
    **dict.fromkeys(COMPLETE, RunState.COMPLETE),
    **dict.fromkeys(FAILED | {StepStatus.TIMED_OUT}, RunState.FAIL),
    # Ended before its work was done, by somebody or by what came before it.
    **dict.fromkeys(NEVER_BEGAN | {StepStatus.STOPPED}, RunState.ABORT),
}

Signal = tuple[str, int]  # the name, and the number among those of that name


class Attempt(msgspec.Struct, frozen=True):
    """A run of an instance or, with a step, one attempt of that."""

    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str | None = None
    iteration: int = 1
    attempt: int = 1

    @property
    def job(self) -> str:
        return self.workflow_id if self.step_id is None else f"{self.workflow_id}.{self.step_id}"

    @property
    def whole(self) -> "Attempt":
        """The run that a step belongs to."""
        return Attempt(self.workflow_id, self.instance_id, self.run_id)

    def tags(self) -> dict[str, str]:
        """What it is called here, to find it again."""
        names = ["workflow_id", "instance_id", "run_id"]
        names += [] if self.step_id is None else ["step_id", "iteration", "attempt"]
        return {name: str(getattr(self, name)) for name in names}


class More(TypedDict, total=False):
    """The optional facts of an event: signals that the run reads and writes, the reason of its end, its parent."""

    parent: c.Parent | None
    reads: Sequence[Signal]
    writes: Sequence[Signal]
    reason: str


class LineageEvents:
    """Makes the lineage events of a deployment, whose jobs are in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def of(self, entry: Entry) -> Iterator[RunEvent]:
        """The events that an entry of our history stands for. Most stand for none."""
        tell = TOLD.get(type(entry.value))
        if tell is not None:
            yield from tell(self, entry, entry.value)

    def id_of(self, at: Attempt) -> str:
        """The id of a run: the same for ever, whoever asks."""
        named = [self.namespace, at.workflow_id, at.instance_id, at.run_id, at.step_id, at.iteration, at.attempt]
        return str(uuid5(IDS, msgspec.json.encode(named).decode()))

    def event(self, at: Attempt, state: RunState, at_ms: int, **more: Unpack[More]) -> RunEvent:
        """An event of a run."""
        reads, writes, reason = more.get("reads", ()), more.get("writes", ()), more.get("reason", "")
        kind = job_type_job.JobTypeJobFacet("BATCH", INTEGRATION, "WORKFLOW" if at.step_id is None else "STEP")
        return RunEvent(
            eventType=state,
            eventTime=_time(at_ms),
            run=Run(
                self.id_of(at),
                self._run_facets(at, reason if state in {RunState.FAIL, RunState.ABORT} else "")
                | self._parent_facet(at, more.get("parent")),
            ),
            job=Job(self.namespace, at.job, {"jobType": kind}),
            inputs=[
                InputDataset(self.namespace, f"signal/{version[0]}", facets=_version(version)) for version in reads
            ],
            outputs=[
                OutputDataset(self.namespace, f"signal/{version[0]}", facets=_version(version)) for version in writes
            ],
        )

    def _run_facets(self, at: Attempt, reason: str) -> dict[str, RunFacet]:
        tags = [tags_run.TagsRunFacetFields(name, value, INTEGRATION) for name, value in at.tags().items()]
        facets: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(VERSION, "Kapelle"),
            "tags": tags_run.TagsRunFacet(tags=tags),
        }
        if reason:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(reason[:TEXT_CHARS_MAX], "PYTHON")
        return facets

    def _parent_facet(self, at: Attempt, parent: c.Parent | None) -> dict[str, RunFacet]:
        """Of a step its run, of a child the step that has started it and the root. An event of a step names no root."""
        if at.step_id is not None:
            above, root = at.whole, None  # any instance may be a child: that of a subworkflow has an ordinary key
        elif (parent := read_parent(parent)) is not None:
            above = Attempt(*ids_of(parent.key), parent.run_id, parent.step_id, parent.iteration, parent.attempt)
            root = Attempt(*ids_of(parent.root), parent.root_run_id) if parent.root_run_id else None
        else:
            return {}
        facet = parent_run.ParentRunFacet(
            run=parent_run.Run(self.id_of(above)), job=parent_run.Job(self.namespace, above.job)
        )
        if root is not None:
            facet.root = parent_run.Root(
                run=parent_run.RootRun(self.id_of(root)), job=parent_run.RootJob(self.namespace, root.job)
            )
        return {"parent": facet}

    # Instances --------------------------------------------------------------------------------------------------------

    def run_started(self, _: Entry, event: c.RunStarted) -> Iterator[RunEvent]:
        at = Attempt(event.workflow_id, event.instance_id, event.run_id)
        yield self.event(at, RunState.START, event.at_ms, reads=_started_by(event.initiator), parent=event.parent)

    def run_ended(self, _: Entry, event: c.RunEnded) -> Iterator[RunEvent]:
        at = Attempt(event.workflow_id, event.instance_id, event.run_id)
        yield self.event(at, ENDS.get(event.run_status, RunState.OTHER), event.at_ms, reason=event.reason)

    def instance_created(self, _: Entry, event: c.InstanceCreated) -> Iterator[RunEvent]:
        """One that is queued has not begun; one that will never run has begun and ended."""
        if event.status in ENDS:
            yield from self._never_ran(event, event.status, reads=_started_by(event.initiator))

    def instance_ended(self, _: Entry, event: c.InstanceEnded) -> Iterator[RunEvent]:
        """The end of one that had left the queue is told by its run."""
        if not event.was_launched:
            yield from self._never_ran(event, event.status)

    def _never_ran(
        self, event: c.InstanceCreated | c.InstanceEnded, status: InstanceStatus, reads: tuple[Signal, ...] = ()
    ) -> Iterator[RunEvent]:
        at = Attempt(event.workflow_id, event.instance_id, event.run_id)
        parent = event.parent if isinstance(event, c.InstanceCreated) else None
        yield self.event(at, RunState.START, event.at_ms, reads=reads, parent=parent)
        yield self.event(at, ENDS.get(status, RunState.OTHER), event.at_ms, reason=event.reason)

    # Steps ------------------------------------------------------------------------------------------------------------

    def step_changed(self, entry: Entry, event: c.StepChanged) -> Iterator[RunEvent]:
        at = Attempt(*ids_of(entry.key), event.run_id, event.step_id, event.iteration, event.attempt)
        begins, last = StepStatus.CREATED in event.statuses, event.statuses[-1]
        if begins and last in NEVER_BEGAN:
            return
        if begins:
            yield self.event(at, RunState.START, event.at_ms)
        if last in STEP_ENDS:
            yield self.event(at, STEP_ENDS[last], event.at_ms, reason=event.reason)

    def dependency_matched(self, entry: Entry, event: c.DependencyMatched) -> Iterator[RunEvent]:
        if event.signal_id:  # else somebody let the step go on without
            at = Attempt(*ids_of(entry.key), event.run_id, event.step_id, event.iteration, event.attempt)
            yield self.event(at, RunState.RUNNING, event.at_ms, reads=((event.name, event.sequence),))

    # Signals ----------------------------------------------------------------------------------------------------------

    def signal_accepted(self, _: Entry, event: c.SignalAccepted) -> Iterator[RunEvent]:
        """A step announces when it has ended, so this comes after its end."""
        yield from self._published(event.source, (event.name, event.sequence), event.at_ms)

    def signal_duplicated(self, _: Entry, event: c.SignalDuplicated) -> Iterator[RunEvent]:
        yield from self._published(event.source, (event.name, event.first_sequence), event.at_ms)

    def _published(self, source: str, signal: Signal, at_ms: int) -> Iterator[RunEvent]:
        at = _publisher(source)
        if at is not None:
            yield self.event(at, RunState.OTHER, at_ms, writes=(signal,))


TOLD: Final[Mapping[type[object], Callable[[LineageEvents, Entry, Any], Iterator[RunEvent]]]] = {
    c.RunStarted: LineageEvents.run_started,
    c.RunEnded: LineageEvents.run_ended,
    c.InstanceCreated: LineageEvents.instance_created,
    c.InstanceEnded: LineageEvents.instance_ended,
    c.StepChanged: LineageEvents.step_changed,
    c.DependencyMatched: LineageEvents.dependency_matched,
    c.SignalAccepted: LineageEvents.signal_accepted,
    c.SignalDuplicated: LineageEvents.signal_duplicated,
}


class _Source(msgspec.Struct):
    """The step that announced a signal, if one did."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int = 1
    iteration: int = 1


def _started_by(initiator: str) -> tuple[Signal, ...]:
    starter = initiator_of(initiator)
    return tuple(sorted(starter.signal_id_map.items())) if starter.kind == "SIGNAL" else ()


def _publisher(source: str) -> Attempt | None:
    try:
        publisher = msgspec.json.decode(source, type=_Source)
    except msgspec.MsgspecError:
        return None
    return Attempt(
        workflow_id=publisher.workflow_id,
        instance_id=publisher.workflow_instance_id,
        run_id=publisher.workflow_run_id,
        step_id=publisher.step_id,
        iteration=publisher.iteration,
        attempt=publisher.step_attempt_id,
    )


def _version(signal: Signal) -> dict[str, DatasetFacet]:
    return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(str(signal[1]))}


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
