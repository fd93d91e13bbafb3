"""`kapelle run`: start instances, look at them, and end them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.errors import BadParam, EndedOtherwise
from kapelle.cli.options.client import (
    URL,
    Cursor,
    InstanceId,
    Limit,
    Param,
    Reason,
    RequestId,
    RunId,
    Timeout,
    Url,
    WorkflowId,
)
from kapelle.cli.options.output import Output
from kapelle.cli.params import given
from kapelle.cli.progress import follow
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.events import show_events
from kapelle.cli.text.instances import show_instance
from kapelle.cli.text.output import Form
from kapelle.cli.text.timelines import show_entry, show_timeline
from kapelle.cli.trees import DEPTH_MAX, Tree, as_json

if TYPE_CHECKING:
    from kapelle.client import Client, InstanceRecord, Started
    from kapelle.client.options import InstanceFilters
    from kapelle.client.results import History, Matrix

group = typer.Typer(
    name="run", help="Start, watch, stop and restart instances.", no_args_is_help=True, rich_markup_mode=None
)


@group.command()
def start(
    workflow_id: WorkflowId,
    *,
    param: Param = None,
    version: Annotated[
        str,
        typer.Option("--version", metavar="VERSION", help="Start this version: a number, active, latest or default."),
    ] = "active",
    watch_it: Annotated[bool, typer.Option("--watch", help="Show what happens until the instance ends.")] = False,
    timeout_s: Timeout = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Start an instance of a workflow.

    With --watch, the exit code is 0 if the instance ends as SUCCEEDED, and 1 otherwise.

    \b
    Examples:
      kapelle run start etl
      kapelle run start etl --param day=2026-07-01 --param rows=1000 --watch
      kapelle run start etl --request-id order-4711 -o json
    """
    more = {"request_id": request_id} if request_id else {}
    with connected(url) as client:
        started = client.instances.start(workflow_id, version=version, run_params=given(param or ()), **more)  # type: ignore[arg-type] # one option, by name
        output.show(started, form, _show_start)
        if watch_it:
            _watch(client, (workflow_id, started.workflow_instance_id), timeout_s, form)


def _show_start(started: "Started") -> None:
    output.data(f"{started.workflow_id} {started.workflow_instance_id}")
    look = output.command("run", "describe", started.workflow_id, started.workflow_instance_id)
    output.say(f"{_came_of(started)}to show it: {look}")


def _came_of(started: "Started") -> str:
    """A remark on a start that did not lead to a run."""
    if started.status == "DUPLICATED":
        return "duplicate request; "
    if started.status in ("STOPPED", "FAILED"):
        return f"{started.status}{f': {started.message}' if started.message else ''}; "
    return ""


# The filters of a list.
Statuses = Annotated[
    list[str] | None,
    typer.Option(
        "--status", metavar="STATUS", help="Show only instances with this status, for example FAILED. Repeatable."
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Show only instances with this tag. Repeatable: an instance must have all tags.",
    ),
]
ParamFilters = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="Show only instances with this parameter value. Repeatable."
    ),
]
Initiator = Annotated[
    str | None,
    typer.Option(
        "--initiator",
        metavar="TYPE",
        help="Show only instances started by this type of initiator: manual, signal, …",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Show only instances created at this time or later: ISO 8601, or milliseconds since 1970.",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Show only instances created before this time.")
]
ParentAt = Annotated[
    str | None,
    typer.Option("--parent", metavar="WORKFLOW/INSTANCE", help="Show only children of this instance. Needs --step."),
]
OfBackfill = Annotated[
    str | None, typer.Option("--backfill", metavar="ID", help="Show only instances that this backfill has started.")
]
OfStep = Annotated[
    str | None, typer.Option("--step", metavar="STEP", help="Show only children of this step of the parent.")
]


@group.command("list")
def list_runs(
    workflow_id: Annotated[
        str | None, typer.Argument(metavar="WORKFLOW", help="Workflow id. Default: all workflows.")
    ] = None,
    *,
    status: Statuses = None,
    tag: Tags = None,
    param: ParamFilters = None,
    initiator: Initiator = None,
    since: Since = None,
    until: Until = None,
    backfill_id: OfBackfill = None,
    parent: ParentAt = None,
    step_id: OfStep = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List instances, newest first. With --parent and --step, list the children of a step.

    Iterations of a foreach step and rounds of a while step are listed only as children, or by their own workflow id.

    \b
    Examples:
      kapelle run list
      kapelle run list etl --status FAILED --status TIMED_OUT --since 2026-07-01
      kapelle run list --tag nightly --param day=20260701 --initiator signal
      kapelle run list etl --backfill 3f9c21ab04de --status FAILED
      kapelle run list --parent etl/12 --step loop --status FAILED
    """
    if parent is not None or step_id is not None:
        if workflow_id or tag or param or initiator or since or until or backfill_id:
            raise BadParam("Expected no filter but --status with --parent and --step, but found another one")
        at = step_at(parent, step_id)
        with connected(url) as client:
            wanted = [state.upper() for state in status or ()]
            page = client.steps.children(at, status=wanted, limit=limit, cursor=cursor)
        heads = ("workflow", "instance", "run", "status", "created", "took", "reason")
        tables.show_page(page, form, heads, lambda record: (*_row(record), record.reason))
        return
    filters: InstanceFilters = {"status": [state.upper() for state in status or ()], "tags": tag or ()}
    filters["params"] = dict(_named(text) for text in param or ())
    for name, value in {"initiator": initiator, "since": since, "until": until, "backfill_id": backfill_id}.items():
        if value is not None:
            filters[name] = value  # type: ignore[literal-required] # four of its own names
    with connected(url) as client:
        page = client.instances.list(workflow_id, limit=limit, cursor=cursor, **filters)
    tables.show_page(page, form, ("workflow", "instance", "run", "status", "created", "took"), _row)


def _row(record: "InstanceRecord") -> tuple[tables.Cell, ...]:
    return (
        record.workflow_id,
        record.workflow_instance_id,
        record.workflow_run_id,
        record.status,
        tables.at(record.create_time),
        tables.lasted(record.start_time, record.end_time),
    )


def step_at(parent: str | None, step_id: str | None) -> tuple[str, int, str]:
    """The step that --parent and --step name."""
    workflow_id, slash, number = (parent or "").rpartition("/")
    if not (step_id and workflow_id and slash and number.isascii() and number.isdigit()):
        raise BadParam(f"Expected --parent WORKFLOW/INSTANCE and --step STEP, but found {parent!r} and {step_id!r}")
    return workflow_id, int(number), step_id


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadParam(f"Expected --param NAME=VALUE, but found {text!r}")
    return name, value


@group.command()
def count(
    workflow_id: Annotated[
        str | None, typer.Argument(metavar="WORKFLOW", help="Workflow id. Default: all workflows.")
    ] = None,
    *,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Count instances by status.

    \b
    Examples:
      kapelle run count
      kapelle run count etl -o json
    """
    with connected(url) as client:
        counts = client.instances.counts(workflow_id)
    output.show(counts, form, lambda answer: tables.show(("status", "instances"), sorted(answer.counts.items())))


@group.command()
def describe(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    *,
    run_id: RunId = None,
    depth: Annotated[
        int,
        typer.Option(
            "--depth", metavar="N", min=0, max=DEPTH_MAX, help="Show N levels of children. With 0, only count them."
        ),
    ] = DEPTH_MAX,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show an instance: its latest run and the latest attempt of each step. With --run, show one run.

    Below a step with children, show how many there are in each status, and how many steps are below them. Then show the
    children that did not succeed, those that failed first, at most 10 of a step, and below them the same again, down to
    the steps that failed, each with the command that restarts it. Children are shown as they are now, also with --run.

    With -o json, `children` has those of each step, in the form of the instance itself: `steps` of a child are those
    that did not succeed, `other_steps` and `other_children` count what is not shown. A child without `steps` was not
    looked into.

    \b
    Examples:
      kapelle run describe etl 12
      kapelle run describe etl 12 --depth 1
      kapelle run describe etl 12 --run 1 -o json
    """
    at = (workflow_id, instance_id)
    with connected(url) as client:
        steps = client.steps.list(*at, run_id=run_id)
        branches = Tree(client, depth).below(at, steps)
        instance = client.instances.get(*at, run_id=run_id, aggregated=bool(branches))
    whole = {**msgspec.to_builtins(instance), "steps": steps, **as_json(branches)}
    output.show(whole, form, lambda _: show_instance(instance, steps, branches))


@group.command()
def watch(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    *,
    timeout_s: Timeout = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show what happens to an instance until it ends.

    For a step with children, show how many there are in each status, and how many steps are below them, at any depth,
    whenever that changes.
    The exit code is 0 if the instance ends as SUCCEEDED, 1 if it ends otherwise, and 5 after --timeout.

    \b
    Examples:
      kapelle run watch etl 12
      kapelle run watch etl 12 --timeout 60 -o json
    """
    with connected(url) as client:
        _watch(client, (workflow_id, instance_id), timeout_s, form)


def _watch(client: "Client", at: tuple[str, int], timeout_s: float | None, form: Form) -> None:
    instance = follow(client, at, timeout_s, lambda entry: output.show_line(entry, form, show_entry))
    what = f"{instance.workflow_id}/{instance.workflow_instance_id}"
    if instance.status != "SUCCEEDED":
        why = f": {instance.reason}" if instance.reason else ""
        raise EndedOtherwise(f"{what} {instance.status}{why}")
    output.say(f"{what} {instance.status}", style="green")


@group.command()
def timeline(workflow_id: WorkflowId, instance_id: InstanceId, *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Show what happened to an instance, in order, over all its runs.

    \b
    Examples:
      kapelle run timeline etl 12
    """
    with connected(url) as client:
        answer = client.instances.timeline(workflow_id, instance_id)
    output.show(answer, form, lambda entries: show_timeline(entries.elements))


@group.command()
def matrix(
    workflow_id: WorkflowId,
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=100, help="Show the last N instances.")
    ] = 10,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show the last instances of a workflow with the current status of each step.

    \b
    Examples:
      kapelle run matrix etl
      kapelle run matrix etl -n 50 -o json
    """
    with connected(url) as client:
        matrix = client.workflows.matrix(workflow_id, limit=limit)
    output.show(matrix, form, _show_matrix)


def _show_matrix(matrix: "Matrix") -> None:
    rows: list[Sequence[str | int]] = [
        (
            instance.workflow_instance_id,
            instance.workflow_run_id,
            instance.status,
            *(instance.steps[step].status if step in instance.steps else "" for step in matrix.steps),
        )
        for instance in matrix.instances
    ]
    tables.show(("instance", "run", "status"), rows, names=matrix.steps)


@group.command()
def history(workflow_id: WorkflowId, instance_id: InstanceId, *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Show the events of an instance in the order of the log, with partition and offset.

    Heartbeats of workers are omitted. With -o json, all fields of each event are shown.

    \b
    Examples:
      kapelle run history etl 12
      kapelle run history etl 12 -o json
    """
    with connected(url) as client:
        history = client.instances.history(workflow_id, instance_id)
    output.show(history, form, _show_history)


def _show_history(history: "History") -> None:
    show_events(history.elements)
    if history.is_cut:
        output.say(f"older events are not shown: these are the last {len(history.elements):,}")


# What can be done to an instance, and the help of the command that does it.
ACTIONS: Final = {
    "stop": """Stop a queued or running instance. Its active steps are stopped.

    \b
    Examples:
      kapelle run stop etl 12 --reason "wrong day"
    """,
    "kill": """Fail a queued or running instance.

    \b
    Examples:
      kapelle run kill etl 12
    """,
    "unblock": """Unblock a failed instance. Instances that wait because it failed can start.

    \b
    Examples:
      kapelle run unblock etl 12
    """,
}


def _add_action(action: str, about: str) -> None:
    @group.command(action, help=about)
    def act(
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        *,
        reason: Reason = "",
        request_id: RequestId = None,
        url: Url = URL,
        form: Output = Form.TEXT,
    ) -> None:
        with connected(url) as client:
            take = getattr(client.instances, action)
            done = take(workflow_id, instance_id, reason=reason, request_id=request_id)
        status = f" is {done.workflow_status}" if done.workflow_status else f": {action} is {done.status}"
        output.show_outcome(done, form, f"{workflow_id} {instance_id}{status}")


for _action, _about in ACTIONS.items():
    _add_action(_action, _about)


@group.command()
def restart(
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    *,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Run all steps again, not only the incomplete ones.")
    ] = False,
    param: Param = None,
    watch_it: Annotated[bool, typer.Option("--watch", help="Show what happens until the instance ends.")] = False,
    timeout_s: Timeout = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Restart an ended instance: start a new run of it.

    A child is run again by its nearest ancestor that runs, or by a new run of the root.

    \b
    Examples:
      kapelle run restart etl 12
      kapelle run restart etl 12 --from-start --param rows=10 --watch
    """
    policy = "RESTART_FROM_BEGINNING" if from_start else "RESTART_FROM_INCOMPLETE"
    at = (workflow_id, instance_id)
    with connected(url) as client:
        started = client.instances.restart(*at, policy=policy, run_params=given(param or ()), request_id=request_id)
        at = (started.workflow_id, started.workflow_instance_id)  # for a child, the ancestor that runs it again
        output.show_outcome(started, form, f"{at[0]} {at[1]} run {started.workflow_run_id}")
        if watch_it:
            _watch(client, at, timeout_s, form)
