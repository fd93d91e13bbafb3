"""The parameters of a restarted run: those of the last run, with the changes of the request."""

from collections.abc import Mapping

import msgspec

from kapelle.processors.params import (
    SEL,
    WORKFLOW_DEFAULTS,
    WORKFLOW_RESTART,
    Context,
    Definition,
    Definitions,
    Evaluated,
    Source,
    WorkflowScope,
    check_run_params,
    definitions_of,
    evaluate,
    merged,
    taken_over,
)
from kapelle.processors.params.host import ParamsHost
from kapelle.processors.params.outputs import as_declared, frozen
from kapelle.processors.params.stored import restored, values_json
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.facts import facts_of
from kapelle.processors.runs.params import parsed_object, workflow_values
from kapelle.processors.runs.plan import Plan
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import RunRow
from kapelle.schemas.contracts import RestartPolicy


class By(msgspec.Struct, frozen=True):
    """Who restarts an instance, and how."""

    author: str
    policy: RestartPolicy
    is_parent: bool = False


def restarted_params(context: RunContext, given: Mapping[str, object], by: By) -> str:
    """The parameters of the new run: those of the last one, changed by what is given, evaluated now, as JSON."""
    if not by.is_parent:
        check_run_params(given)
    run, plan = context.run, context.plan
    own, more = taken_over(_evaluated(run, plan)), definitions_of(given)
    shared = as_declared(_shared(context, own), more)
    before = {**shared, **own}
    definitions = merged(
        WORKFLOW_RESTART,
        {"previous run": before, "restart params": as_declared(more, before) if by.is_parent else more},
        started_by=Source.LAUNCH,
        is_restart=True,
    )
    facts = msgspec.structs.replace(
        facts_of(run, plan), run_id=run.run_id + 1, author=by.author, restart=Restart(by.policy).json()
    )
    host = ParamsHost(facts, facts.name)
    scope = WorkflowScope(run.workflow_id, host)
    evaluated = evaluate(definitions, scope, Context(SEL, context.now_ms, f"{facts.key}/{facts.run_id}", host))
    return values_json({name: param for name, param in evaluated.items() if name in own or name in given})


def _shared(context: RunContext, own: Definitions) -> dict[str, Definition]:
    """The parameters that an iteration or a round has from around it."""
    if not context.run.layers:
        return {}
    values = workflow_values(context.run, context.state)
    return {name: frozen(value.value) for name, value in values.items() if name not in own}


def _evaluated(run: RunRow, plan: Plan) -> dict[str, Evaluated]:
    known: dict[str, Definition] = {
        **definitions_of(parsed_object(run.run_params)),
        **WORKFLOW_DEFAULTS,
        **plan.workflow.params,
    }
    return restored(run.params, known, evaluated_at_ms=run.started_at_ms)
