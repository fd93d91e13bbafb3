"""`kapelle workflow`: definitions, their versions, and which of them is active."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli import definitions
from kapelle.cli.definitions import File
from kapelle.cli.options.client import URL, Cursor, Limit, Reason, RequestId, Url, WorkflowId, Yes
from kapelle.cli.options.output import Output
from kapelle.cli.params import given
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client import Pushed
    from kapelle.client.results import Overview

group = typer.Typer(
    name="workflow", help="Push, show and activate workflows.", no_args_is_help=True, rich_markup_mode=None
)


@group.command()
def push(file: File, *, url: Url = URL, request_id: RequestId = None, form: Output = Form.TEXT) -> None:
    """Push a definition: create a workflow, or add a version to it.

    \b
    Examples:
      kapelle workflow push etl.yaml
      kapelle workflow push etl.json --request-id release-42
      kapelle workflow push - < etl.yaml
    """
    written = definitions.read(file)
    with connected(url) as client:
        pushed = client.workflows.push(written.text, is_yaml=written.is_yaml, request_id=request_id)
    output.show(pushed, form, _show_push)


def _show_push(pushed: "Pushed") -> None:
    output.data(f"{pushed.workflow_id} version {pushed.workflow_version_id}")
    active = "active" if pushed.is_active else "not active"
    same = " (duplicate request)" if pushed.status == "DUPLICATED" else ""
    output.say(f"{active}{same}; to start it: {_start(pushed)}")


def _start(pushed: "Pushed") -> str:
    """How to start a version: by its number, if it is not the active one."""
    version = () if pushed.is_active else ("--version", pushed.workflow_version_id)
    return output.command("run", "start", pushed.workflow_id, *version)


@group.command()
def validate(
    file: File,
    *,
    remote: Annotated[bool, typer.Option("--remote", help="Let the server check the definition.")] = False,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Check a definition without pushing it. All problems are reported, each with its path.

    Only --remote needs a server.

    \b
    Examples:
      kapelle workflow validate etl.yaml
      kapelle workflow validate etl.json --remote
    """
    written = definitions.read(file)
    if remote:
        with connected(url) as client:
            client.workflows.validate(written.text, is_yaml=written.is_yaml)
    else:
        definitions.check(written)
    output.show({"valid": True}, form, lambda _: output.data(f"{written.name} can be pushed"))


@group.command("list")
def list_workflows(
    *,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Show only ids that begin with this text.")
    ] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List workflows in the order of their ids.

    \b
    Examples:
      kapelle workflow list
      kapelle workflow list --prefix sales. -o json
    """
    with connected(url) as client:
        page = client.workflows.list(prefix=prefix, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("workflow", "active", "latest", "owner", "changed"),
        lambda record: (
            record.workflow_id,
            record.active_version_id,
            record.latest_version_id,
            _name(record.owner),
            tables.at(record.modify_time),
        ),
    )


@group.command()
def describe(workflow_id: WorkflowId, *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Show a workflow: versions, properties, and the number of instances in each status.

    \b
    Examples:
      kapelle workflow describe etl
      kapelle workflow describe etl -o json
    """
    with connected(url) as client:
        overview = client.workflows.overview(workflow_id)
    output.show(overview, form, _show_overview)


def _show_overview(overview: "Overview") -> None:
    properties = overview.properties_snapshot or {}
    tables.pairs(
        [
            ("workflow", overview.workflow_id),
            ("active version", overview.active_version_id or "none"),
            ("latest version", overview.latest_version_id),
            ("owner", _name(properties.get("owner"))),
            ("run strategy", _strategy(properties.get("run_strategy"))),
            ("instances", ", ".join(f"{count} {status}" for status, count in overview.instances.items()) or "none"),
            ("latest instance", overview.latest_instance_id),
        ]
    )


def _strategy(strategy: object) -> str:
    """A run strategy in words: its rule, and how many at a time where that is to be said."""
    if not isinstance(strategy, dict):
        return str(strategy or "SEQUENTIAL")
    many = strategy.get("workflow_concurrency") or 1
    return f"{strategy.get('rule')}{f', {many} at a time' if many > 1 else ''}"


@group.command()
def show(
    workflow_id: WorkflowId,
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION",
            help="Version: a number, active, latest or default. default is the active version, or the latest "
            "if none is active.",
        ),
    ] = "default",
    *,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Print the definition of a version, as JSON that can be pushed.

    With -o json, the author, the time and the properties of the version are printed too.

    \b
    Examples:
      kapelle workflow show etl
      kapelle workflow show etl 3 > etl-3.json
    """
    from kapelle.client.calls import read  # noqa: PLC0415 - slow to import

    with connected(url) as client:
        # As it is written: no number loses a digit on its way.
        answer = client.send(read(dict[str, msgspec.Raw], "workflows", workflow_id, "versions", version))
    output.show(answer, form, lambda members: output.json({"workflow": members["workflow"]}))


@group.command()
def properties(
    workflow_id: WorkflowId,
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=VALUE",
            help="Set a property. A value that is not JSON is a string. Repeatable.",
        ),
    ] = None,
    url: Url = URL,
    request_id: RequestId = None,
    form: Output = Form.TEXT,
) -> None:
    """Show or set the properties of a workflow. They can be set without a new version.

    \b
    Examples:
      kapelle workflow properties etl
      kapelle workflow properties etl --set run_strategy=STRICT_SEQUENTIAL
      kapelle workflow properties etl -s run_strategy=5 -s signal_trigger_disabled=true
      kapelle workflow properties etl --set reset_run_strategy_rule=true
    """
    with connected(url) as client:
        if param:
            client.workflows.properties(workflow_id, given(param, "--set"), request_id=request_id)
        snapshot = client.workflows.overview(workflow_id).properties_snapshot or {}
    output.show(snapshot, form, _show_properties)


def _show_properties(snapshot: Mapping[str, object]) -> None:
    shown = {name: value for name, value in snapshot.items() if name not in ("workflow_id", "create_time", "author")}
    tables.pairs([(name, value if isinstance(value, str) else _compact(value)) for name, value in shown.items()])


@group.command()
def versions(
    workflow_id: WorkflowId, *, limit: Limit = 50, cursor: Cursor = None, url: Url = URL, form: Output = Form.TEXT
) -> None:
    """List the versions of a workflow, latest first.

    \b
    Examples:
      kapelle workflow versions etl
      kapelle workflow versions etl --limit 5
    """
    with connected(url) as client:
        page = client.workflows.versions(workflow_id, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("version", "", "author", "pushed"),
        lambda version: (
            version.metadata.workflow_version_id,
            "active" if version.is_active else "",
            _name(version.metadata.version_author),
            tables.at(version.metadata.create_time),
        ),
    )


@group.command()
def activate(
    workflow_id: WorkflowId,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Version: a number, or latest.")] = "latest",
    *,
    url: Url = URL,
    request_id: RequestId = None,
    form: Output = Form.TEXT,
) -> None:
    """Activate a version. New instances use the active version.

    \b
    Examples:
      kapelle workflow activate etl
      kapelle workflow activate etl 3
    """
    with connected(url) as client:
        done = client.workflows.activate(workflow_id, version, request_id=request_id)
    output.show_outcome(done, form, f"{workflow_id} version {done.workflow_version_id or version} is active")


@group.command()
def deactivate(
    workflow_id: WorkflowId, *, url: Url = URL, request_id: RequestId = None, form: Output = Form.TEXT
) -> None:
    """Deactivate a workflow. Without an active version, triggers do not start it.

    \b
    Examples:
      kapelle workflow deactivate etl
    """
    with connected(url) as client:
        done = client.workflows.deactivate(workflow_id, request_id=request_id)
    output.show_outcome(done, form, f"{workflow_id} has no active version")


@group.command()
def delete(
    workflow_id: WorkflowId,
    *,
    yes: Yes = False,
    url: Url = URL,
    request_id: RequestId = None,
    form: Output = Form.TEXT,
) -> None:
    """Delete a workflow that has no queued or running instances. Its history stays in the log.

    \b
    Examples:
      kapelle workflow delete etl --yes
    """
    if not yes:
        typer.confirm(f"Delete workflow {workflow_id}?", abort=True, err=True)
    with connected(url) as client:
        done = client.workflows.delete(workflow_id, request_id=request_id)
    output.show_outcome(done, form, f"{workflow_id} is deleted")


# What can be done to all instances of a workflow at once, and the help of the command that does it.
ACTIONS: Final = {
    "stop": """Stop all queued and running instances of a workflow.

    \b
    Examples:
      kapelle workflow stop etl --reason "wrong table" --yes
    """,
    "kill": """Fail all queued and running instances of a workflow.

    \b
    Examples:
      kapelle workflow kill etl --yes
    """,
    "unblock": """Unblock a workflow. Instances that wait because an earlier instance failed can start.

    \b
    Examples:
      kapelle workflow unblock etl
    """,
}


def _add_action(action: str, about: str) -> None:
    @group.command(action, help=about)
    def act(
        workflow_id: WorkflowId,
        *,
        yes: Yes = False,
        reason: Reason = "",
        url: Url = URL,
        request_id: RequestId = None,
        form: Output = Form.TEXT,
    ) -> None:
        if not yes and action != "unblock":
            typer.confirm(f"{action.capitalize()} all instances of {workflow_id}?", abort=True, err=True)
        with connected(url) as client:
            done = getattr(client.workflows, action)(workflow_id, reason=reason, request_id=request_id)
        what = done.status if done.count is None else f"{done.status}, of {output.counted(done.count, 'instance')}"
        output.show_outcome(done, form, f"{workflow_id}: {action} is {what}")


for _action, _about in ACTIONS.items():
    _add_action(_action, _about)


def _name(owner: object) -> str:
    """An owner or author, who may be a name or an object with one."""
    return str(owner.get("name", "")) if isinstance(owner, dict) else str(owner or "")


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()
