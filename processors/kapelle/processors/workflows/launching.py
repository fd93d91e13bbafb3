"""How runs are launched: the first of the queue, as many as the run strategy allows."""

from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from kapelle.processors.routes import RUN_INTERNAL, WORKFLOW_INTERNAL, run_key
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.reading import counts_of, definition_of, strategy_of, there
from kapelle.processors.workflows.strategies import LAUNCHES_MAX, launchable
from kapelle.processors.workflows.tables import Origin, Queued
from kapelle.schemas import contracts as c

SNAPSHOTS_CACHED: Final = 1024


def launch_queued(draft: WorkflowDraft, now_ms: int) -> None:
    """Launch all that may run. Beyond a batch, ask for the rest to be launched by a decision of its own."""
    counts = counts_of(draft.state, draft.key)
    if not counts.queued:
        return
    count = launchable(strategy_of(draft.state, draft.key), counts)
    if not count:  # most starts into a long queue end here: not even the head of the queue is looked for
        return
    first = islice(draft.state.queue.prefix((draft.key,)), min(count, LAUNCHES_MAX))
    for (_, instance_id, run_id), queued in list(first):
        _launch(draft, (instance_id, run_id), queued, now_ms=now_ms)
    if count > LAUNCHES_MAX:
        draft.send(WORKFLOW_INTERNAL, draft.key, c.LaunchQueued())


def _launch(draft: WorkflowDraft, run: tuple[int, int], queued: Queued, *, now_ms: int) -> None:
    instance_id, run_id = run
    origin = queued.origin
    if origin is None:
        origin = there(draft.state.origins.get((draft.key, instance_id)), "origins", draft.key, instance_id)
    draft.emit(c.InstanceLaunched(workflow_id=draft.key, instance_id=instance_id, run_id=run_id, at_ms=now_ms))
    draft.send(
        RUN_INTERNAL,
        run_key(draft.key, instance_id),
        c.StartRun(
            workflow_id=draft.key,
            instance_id=instance_id,
            run_id=run_id,
            request_id=queued.request_id,
            version=origin.version,
            definition=definition_of(draft.state, draft.key, origin.version),
            initiator=origin.initiator,
            params=queued.params or origin.params or "{}",
            run_params=origin.run_params if queued.run_params is None else queued.run_params,
            step_run_params=origin.step_run_params,
            run_properties=_run_properties(draft, origin),
            correlation_id=origin.correlation_id,
            restart=queued.restart,
            author=queued.author,
        ),
    )


def _run_properties(draft: WorkflowDraft, origin: Origin) -> str:
    """The properties as they were when the instance was created."""
    snapshot = draft.state.properties.get((draft.key, origin.snapshot))
    return "{}" if snapshot is None else run_properties(snapshot.text, origin.runtime_tags)


@lru_cache(maxsize=SNAPSHOTS_CACHED)
def run_properties(snapshot: str, runtime_tags: str) -> str:
    """What a run carries of the properties: owner, alerting, step concurrency and tags. What is absent is unset."""
    whole = msgspec.json.decode(snapshot)
    kept = {name: whole[name] for name in ("owner", "alerting", "step_concurrency", "tags") if name in whole}
    return msgspec.json.encode({**kept, "runtime_tags": msgspec.json.decode(runtime_tags)}).decode()
