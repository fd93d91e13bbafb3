"""`kapelle trigger`: the triggers of a workflow, what they wait for, their ticks, and why it did not start."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.options.client import URL, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form
from kapelle.cli.text.schedules import show_list, show_schedule

if TYPE_CHECKING:
    from kapelle.client import ScheduleRecord
    from kapelle.client.results import Object
    from kapelle.client.signal_results import TriggerExplanation

group = typer.Typer(
    name="trigger",
    help="Show time triggers with their ticks, and what signal triggers wait for.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TICKS_SHOWN: Final = 5
TICKS_MAX: Final = 100


class Triggers(msgspec.Struct, frozen=True):
    """The triggers of a workflow: `schedules` are its time triggers, `triggers` its signal triggers."""

    workflow_id: str
    schedules: "list[ScheduleRecord]"
    triggers: "list[Object]"


@group.command("list")
def list_triggers(
    workflow_id: WorkflowId,
    *,
    with_disarmed: Annotated[bool, typer.Option("--all", help="Include triggers that are no longer armed.")] = False,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List the triggers of a workflow.

    A time trigger is shown with its next tick and the outcome of its last one. A signal trigger is shown with the
    signals that wait to be joined with others.

    \b
    Examples:
      kapelle trigger list etl
      kapelle trigger list etl --all -o json
    """
    with connected(url) as client:
        listed = client.triggers.list(workflow_id, with_disarmed=with_disarmed)
        schedules = client.schedules.list(workflow_id, with_disarmed=with_disarmed).schedules
    output.show(Triggers(workflow_id, schedules, listed.triggers), form, _show)


def _show(listed: Triggers) -> None:
    if listed.schedules:
        show_list(listed.schedules)
    if not listed.triggers and listed.schedules:
        return
    if listed.schedules:
        tables.stdout().print()
    rows = [
        (trigger["trigger_id"], ", ".join(trigger["signals"]), _state(trigger), trigger["kept"], _fired(trigger))
        for trigger in listed.triggers
    ]
    tables.show(("trigger", "signals", "state", "kept", "last start"), rows)
    waiting = [line for trigger in listed.triggers for line in _waiting(trigger)]
    if waiting:
        tables.stdout().print()
        tables.show(("trigger", "join value", "there", "waits for"), waiting)


@group.command()
def show(
    workflow_id: WorkflowId,
    *,
    trigger_id: Annotated[
        str | None, typer.Option("--trigger", metavar="ID", help="Show only this time trigger.")
    ] = None,
    count: Annotated[
        int,
        typer.Option("--ticks", "-n", metavar="N", min=1, max=TICKS_MAX, help="Show the next N and the last N ticks."),
    ] = TICKS_SHOWN,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show the time triggers of a workflow: the next ticks, and the last ticks with the outcome of each.

    An outcome is started, refused, passed over (by the catch-up policy) or not armed.

    \b
    Examples:
      kapelle trigger show etl
      kapelle trigger show etl --trigger 5c0b3a1f2e4d6978 -n 20
      kapelle trigger show etl -o json
    """
    with connected(url) as client:
        ids = [trigger_id] if trigger_id else [one.trigger_id for one in client.schedules.list(workflow_id).schedules]
        schedules = [client.schedules.get(workflow_id, one, upcoming=count, last=count) for one in ids]
    output.show(schedules, form, _show_schedules)


def _show_schedules(schedules: "list[ScheduleRecord]") -> None:
    for number, schedule in enumerate(schedules):
        if number:
            tables.stdout().print()
        show_schedule(schedule)
    if not schedules:
        output.say("the workflow has no time triggers")


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
