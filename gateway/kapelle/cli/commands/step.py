"""`kapelle step`: look at steps of an instance, and act on them."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.options.client import URL, InstanceId, Param, Reason, RequestId, RunId, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.params import given
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.children import children_text, is_composite
from kapelle.cli.text.instances import next_attempt
from kapelle.cli.text.output import Form
from kapelle.cli.text.permits import permit_text
from kapelle.cli.text.timelines import show_timeline

if TYPE_CHECKING:
    from kapelle.client import Done, StepRecord

group = typer.Typer(
    name="step",
    help="Show, stop, skip, resume and restart steps of an instance.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

StepId = Annotated[str, typer.Argument(metavar="STEP", help="Step id.")]


@group.command()
def describe(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepId,
    *,
    run_id: RunId = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", min=1, help="Show attempt N. Default: the latest attempt.")
    ] = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show an attempt of a step: its parameters, its worker, and its timeline.

    \b
    Examples:
      kapelle step describe etl 12 load
      kapelle step describe etl 12 load --attempt 1 -o json
    """
    with connected(url) as client:
        record = client.steps.get(workflow_id, instance_id, step_id, run_id=run_id, attempt=attempt)
    output.show(record, form, _show)


def _show(record: "StepRecord") -> None:
    tables.pairs(
        [
            ("step", record.step_id),
            ("run", record.workflow_run_id),
            ("iteration", record.iteration if (record.iteration or 1) > 1 else None),
            ("attempt", record.step_attempt_id),
            ("status", record.status),
            ("reason", record.reason),
            ("next attempt", next_attempt(record)),
            ("children", children_text(record) if is_composite(record) else None),
            ("waits for", record.waiting_for),
            ("worker", record.worker),
            ("paused since", tables.at(record.pause_time) if record.status == "PAUSED" else None),
            *((f"  breakpoint of {point.created_by}", tables.at(point.create_time)) for point in record.breakpoints),
            *((f"  {permit.limited}", permit_text(permit)) for permit in record.permits),
            ("began", tables.at(record.start_time)),
            ("took", tables.lasted(record.start_time, record.end_time)),
            *((f"  {name}", _value(value)) for name, value in record.params.items()),
        ]
    )
    if record.timeline:
        tables.stdout().print()
        show_timeline(record.timeline)


def _value(param: object) -> str:
    """An evaluated parameter, or one that is not yet."""
    if not isinstance(param, dict):
        return msgspec.json.encode(param).decode()
    for key in ("evaluated_result", "value", "expression"):
        if key in param:
            return msgspec.json.encode(param[key]).decode()
    return msgspec.json.encode(param).decode()


@group.command()
def restart(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepId,
    *,
    param: Param = None,
    from_inline_root: Annotated[
        bool,
        typer.Option(
            "--from-inline-root",
            help="Restart the nearest ancestor that is no iteration and no round. --param reaches the step in every "
            "iteration that runs again.",
        ),
    ] = False,
    from_start: Annotated[
        bool,
        typer.Option(
            "--from-start",
            help="Run all steps again of each iteration, round or subworkflow that restarts, not only the incomplete "
            "ones.",
        ),
    ] = False,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Restart an ended instance from this step, or retry a failed step of a running instance.

    \b
    Examples:
      kapelle step restart etl 12 load
      kapelle step restart etl 12 load --param rows=10
      kapelle step restart maestro_foreach_d64726f967bd20e28cb0e988 2 load --from-inline-root --param rows=10
    """
    with connected(url) as client:
        done = client.steps.restart(
            workflow_id,
            instance_id,
            step_id,
            params=given(param or ()),
            policy="RESTART_FROM_BEGINNING" if from_start else None,
            from_inline_root=from_inline_root,
            request_id=request_id,
        )
    run = _in_run(done, (workflow_id, instance_id))
    output.show_outcome(done, form, f"{workflow_id} {instance_id} {step_id} is restarted{run}")


def _in_run(done: "Done", at: tuple[str, int]) -> str:
    """The run that carries it out, if there is one. For a child it may be that of an ancestor."""
    if not done.workflow_run_id:
        return ""
    whose = (done.workflow_id, done.workflow_instance_id)
    return f" in run {done.workflow_run_id}{'' if whose == at else f' of {whose[0]} {whose[1]}'}"


@group.command()
def resume(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepId,
    *,
    run_id: Annotated[
        int | None, typer.Option("--run", metavar="N", min=1, help="Resume it only if this is its run.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", min=1, help="Resume it only if this is its attempt.")
    ] = None,
    param: Param = None,
    reason: Reason = "",
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Resume a step that a breakpoint has paused. --param replaces parameters of the step.

    \b
    Examples:
      kapelle step resume etl 12 load
      kapelle step resume etl 12 load --param rows=10
      kapelle step resume maestro_foreach_d64726f967bd20e28cb0e988 2 load --attempt 1
    """
    with connected(url) as client:
        done = client.steps.resume(
            workflow_id,
            instance_id,
            step_id,
            params=given(param or ()),
            run_id=run_id,
            attempt=attempt,
            reason=reason,
            request_id=request_id,
        )
    output.show_outcome(done, form, f"{workflow_id} {instance_id} {step_id}: resume is {done.status}")


# What can be done to a step, and the help of the command that does it.
ACTIONS: Final = {
    "stop": """Stop an active step.

    \b
    Examples:
      kapelle step stop etl 12 load
    """,
    "kill": """Fail an active step.

    \b
    Examples:
      kapelle step kill etl 12 load
    """,
    "skip": """Skip a step. The run continues as if the step had succeeded. If the instance has ended, a new run starts.

    \b
    Examples:
      kapelle step skip etl 12 load --reason "loaded by hand"
    """,
    "bypass": """Let a step continue without the signals that it still waits for.

    \b
    Examples:
      kapelle step bypass etl 12 load --reason "the shop is closed today"
    """,
}


def _add_action(action: str, about: str) -> None:
    @group.command(action, help=about)
    def act(
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepId,
        *,
        reason: Reason = "",
        request_id: RequestId = None,
        url: Url = URL,
        form: Output = Form.TEXT,
    ) -> None:
        with connected(url) as client:
            take = getattr(client.steps, action)
            done = take(workflow_id, instance_id, step_id, reason=reason, request_id=request_id)
        run = _in_run(done, (workflow_id, instance_id))
        output.show_outcome(done, form, f"{workflow_id} {instance_id} {step_id}: {action} is {done.status}{run}")


for _action, _about in ACTIONS.items():
    _add_action(_action, _about)
