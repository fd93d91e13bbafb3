"""`kapelle trigger`: what the signal triggers of a workflow wait for, and why it did not start."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kapelle.cli.options.client import URL, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client.results import Object
    from kapelle.client.signal_results import TriggerExplanation, TriggerList

group = typer.Typer(
    name="trigger", help="Show what signal triggers wait for.", no_args_is_help=True, rich_markup_mode=None
)


@group.command("list")
def list_triggers(
    workflow_id: WorkflowId,
    *,
    with_disarmed: Annotated[bool, typer.Option("--all", help="Include triggers that are no longer armed.")] = False,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List the triggers of a workflow, with the signals that wait to be joined with others.

    \b
    Examples:
      kapelle trigger list etl
      kapelle trigger list etl --all -o json
    """
    with connected(url) as client:
        listed = client.triggers.list(workflow_id, with_disarmed=with_disarmed)
    output.show(listed, form, _show)


def _show(listed: "TriggerList") -> None:
    rows = [
        (trigger["trigger_id"], ", ".join(trigger["signals"]), _state(trigger), trigger["kept"], _fired(trigger))
        for trigger in listed.triggers
    ]
    tables.show(("trigger", "signals", "state", "kept", "last start"), rows)
    waiting = [line for trigger in listed.triggers for line in _waiting(trigger)]
    if waiting:
        tables.stdout().print()
        tables.show(("trigger", "join value", "there", "waits for"), waiting)


def _state(trigger: "Object") -> str:
    return "armed" if trigger["is_armed"] else "disarmed"


def _fired(trigger: "Object") -> str:
    fired = trigger["latest"]["FIRED"]
    return "" if fired is None else f"{fired.get('workflow_instance_id', '?')} at {tables.at(fired['time'])}"


def _waiting(trigger: "Object") -> Iterator[tuple[str, str, str, str]]:
    for group in trigger["waiting"]:
        there = "; ".join(f"{name} {_numbers(kept)}" for name, kept in group["there"].items())
        yield trigger["trigger_id"], json.dumps(group["join_value"]), there, ", ".join(group["waiting_for"])


def _numbers(kept: Mapping[str, int]) -> str:
    return f"{kept['next']}" if kept["count"] == 1 else f"{kept['next']} and {kept['count'] - 1} more"


@group.command()
def explain(workflow_id: WorkflowId, *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Explain why a workflow did not start: which signals arrived, and which are missing.

    \b
    Examples:
      kapelle trigger explain etl
    """
    with connected(url) as client:
        explanation = client.triggers.explain(workflow_id)
    output.show(explanation, form, _show_obstacles)


def _show_obstacles(explanation: "TriggerExplanation") -> None:
    for obstacle in explanation.obstacles:
        output.data(obstacle)
    for trigger in explanation.triggers:
        output.data(f"trigger {trigger['trigger_id']} on {', '.join(trigger['signals'])}")
        for line in trigger["missing"] or ["Nothing is missing: the latest signals have started it"]:
            output.data(f"  {line}")
