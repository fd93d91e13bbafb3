"""`kapelle breakpoint`: pause steps before they start, and show what is paused."""

from typing import TYPE_CHECKING, Annotated

import typer

from kapelle.cli.options.client import URL, Cursor, Limit, RequestId, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client import BreakpointRecord, PausedAttempt

group = typer.Typer(
    name="breakpoint",
    help="Pause steps before they start, and show what is paused.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

StepId = Annotated[str, typer.Argument(metavar="STEP", help="Step id, at any depth of the workflow.")]
OnlyWorkflow = Annotated[str | None, typer.Argument(metavar="WORKFLOW", help="Workflow id. Default: all workflows.")]
OnlyStep = Annotated[
    str | None, typer.Option("--step", metavar="STEP", help="Show only those of this step. Expects WORKFLOW.")
]
Version = Annotated[int | None, typer.Option("--version", metavar="N", min=1, help="Match only version N.")]
Instance = Annotated[
    int | None,
    typer.Option("--instance", metavar="N", min=1, help="Match only instance N, with its iterations and rounds."),
]
Run = Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Match only run N of the instance.")]
Attempt = Annotated[int | None, typer.Option("--attempt", metavar="N", min=1, help="Match only attempt N.")]


@group.command("set")
def set_breakpoint(
    workflow_id: WorkflowId,
    step_id: StepId,
    *,
    version: Version = None,
    instance_id: Instance = None,
    run_id: Run = None,
    attempt: Attempt = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Pause the attempts of a step before they start. In a loop, every iteration pauses.

    \b
    Examples:
      kapelle breakpoint set etl load
      kapelle breakpoint set etl load --instance 12
      kapelle breakpoint set etl load --instance 12 --run 2 --attempt 1
    """
    with connected(url) as client:
        done = client.breakpoints.set(
            workflow_id,
            step_id,
            version=version,
            instance_id=instance_id,
            run_id=run_id,
            attempt=attempt,
            request_id=request_id,
        )
    output.show_outcome(done, form, f"{workflow_id} {step_id}: the breakpoint is set{_where(done)}")


@group.command()
def delete(
    workflow_id: WorkflowId,
    step_id: StepId,
    *,
    version: Version = None,
    instance_id: Instance = None,
    run_id: Run = None,
    attempt: Attempt = None,
    keep_paused: Annotated[
        bool, typer.Option("--keep-paused", help="Leave the attempts paused that the breakpoint holds.")
    ] = False,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Delete the breakpoint that was set with these options, and resume what no other breakpoint holds.

    \b
    Examples:
      kapelle breakpoint delete etl load
      kapelle breakpoint delete etl load --instance 12
      kapelle breakpoint delete etl load --keep-paused
    """
    with connected(url) as client:
        done = client.breakpoints.delete(
            workflow_id,
            step_id,
            resume=not keep_paused,
            version=version,
            instance_id=instance_id,
            run_id=run_id,
            attempt=attempt,
            request_id=request_id,
        )
    output.show_outcome(done, form, f"{workflow_id} {step_id}: the breakpoint is deleted{_where(done)}")


@group.command("list")
def list_breakpoints(
    workflow_id: OnlyWorkflow = None,
    *,
    step_id: OnlyStep = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List breakpoints with their authors.

    \b
    Examples:
      kapelle breakpoint list
      kapelle breakpoint list etl --step load -o json
    """
    with connected(url) as client:
        page = client.breakpoints.list(workflow_id, step_id, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("workflow", "step", "version", "instance", "run", "attempt", "author", "set"),
        lambda point: (
            point.workflow_id,
            point.step_id,
            point.workflow_version_id,
            point.workflow_instance_id,
            point.workflow_run_id,
            point.step_attempt_id,
            point.created_by,
            tables.at(point.create_time),
        ),
    )


@group.command()
def paused(
    workflow_id: OnlyWorkflow = None,
    *,
    step_id: OnlyStep = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List the attempts that are paused, and who set the breakpoints that hold them.

    \b
    Examples:
      kapelle breakpoint paused
      kapelle breakpoint paused etl --step load
    """
    with connected(url) as client:
        page = client.breakpoints.paused(workflow_id, step_id, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("workflow", "instance", "run", "step", "attempt", "paused", "held by"),
        lambda attempt: (
            attempt.workflow_id,
            attempt.workflow_instance_id,
            attempt.workflow_run_id,
            attempt.step_id,
            attempt.step_attempt_id,
            tables.at(attempt.create_time),
            _held_by(attempt),
        ),
    )
    if form is Form.TEXT and page.elements:
        first = page.elements[0]
        words = (first.workflow_id, first.workflow_instance_id, first.step_id)
        output.say(f"to resume the first one: {output.command('step', 'resume', *words)}")


def _held_by(attempt: "PausedAttempt") -> str:
    return ", ".join(dict.fromkeys(point.created_by for point in attempt.breakpoints)) or "no breakpoint any more"


def _where(point: "BreakpointRecord") -> str:
    parts = [
        ("version", point.workflow_version_id),
        ("instance", point.workflow_instance_id),
        ("run", point.workflow_run_id),
        ("attempt", point.step_attempt_id),
    ]
    text = ", ".join(f"{name} {number}" for name, number in parts if number is not None)
    return f" ({text})" if text else ""
