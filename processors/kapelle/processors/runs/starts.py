"""The start of a run: the first event, created from the command that requests it."""

from kapelle.processors.runs import restarts
from kapelle.processors.runs.plan import digest_of
from kapelle.processors.runs.restarts import Beginning
from kapelle.processors.runs.tables import Runs
from kapelle.schemas import contracts as c


def run_started(start: c.StartRun, state: Runs, now_ms: int, *, timeout_ms: int, begins: Beginning) -> c.RunStarted:
    """That a run has begun now, and with what."""
    digest = digest_of(start.definition)
    return c.RunStarted(
        workflow_id=start.workflow_id,
        instance_id=start.instance_id,
        run_id=start.run_id,
        request_id=start.request_id,
        version=start.version,
        digest=digest,
        # Runs of the same version share it: only the first one on a partition brings it into the history.
        definition=None if state.definitions.get((digest,)) else start.definition,
        initiator=start.initiator,
        params=start.params,
        run_params=start.run_params,
        step_run_params=restarts.with_step_params(start.step_run_params, begins.step_run_params),
        run_properties=start.run_properties,
        correlation_id=start.correlation_id,
        restart=start.restart,
        author=start.author,
        timeout_at_ms=now_ms + timeout_ms,
        steps=begins.steps,
        arrived=begins.arrived,
        satisfied=begins.satisfied,
        iterations=begins.iterations,
        pending=begins.pending,
        again=begins.again,
        at_ms=now_ms,
        parent=start.parent,
        # All children of a step share these: only the first one on a partition brings them into the history.
        layers=tuple(
            layer if state.shared.get((layer.digest,)) is None else c.ParamsLayer(layer.digest)
            for layer in start.layers
        ),
        resumes=begins.resumes,
        breakpoints=start.breakpoints,
        breakpoints_generation=start.breakpoints_generation,
    )
