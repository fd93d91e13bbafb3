"""`kapelle signal`: announce signals, and show what they led to."""

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kapelle.cli.errors import BadParam
from kapelle.cli.options.client import URL, Cursor, Limit, Param, Url
from kapelle.cli.options.output import GraphForm, GraphOutput, Output
from kapelle.cli.params import given, strict_json
from kapelle.cli.server import connected
from kapelle.cli.text import lineages, output, tables
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client import Announced, Explanation, SignalRecord, Verdict

group = typer.Typer(
    name="signal", help="Announce signals, and show what they led to.", no_args_is_help=True, rich_markup_mode=None
)


class Direction(StrEnum):
    """Which way a lineage goes."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"


Name = Annotated[str, typer.Argument(metavar="NAME", help="Signal name. It may contain slashes.")]
Sequence = Annotated[str, typer.Argument(metavar="SEQUENCE", help="Sequence number of the signal, or latest.")]


def number(text: str) -> int | Literal["latest"]:
    """A number of a signal, or `latest`."""
    if text.lower() == "latest":
        return "latest"
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise BadParam(f"Expected the number of a signal or latest, but found {text!r}")
    return int(text)


@group.command()
def announce(
    name: Name,
    *,
    param: Param = None,
    signal_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Give the signal this id. Default: an id derived from the name and the parameters.",
        ),
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="Add this payload, a JSON object.")
    ] = None,
    happened: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="Set the time of the signal: ISO 8601, or milliseconds since 1970. Default: now.",
        ),
    ] = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Announce a signal. Signals with the same name and id are accepted once.

    Parameters are strings and integers. A duplicate is not an error: the answer names the first signal.

    \b
    Examples:
      kapelle signal announce orders/eu -p day=20260701
      kapelle signal announce orders/eu -p day=20260701 --id order-4711 --payload '{"rows": [1, 2]}'
      kapelle signal announce orders/eu --time 2026-07-01T12:00:00Z
    """
    payload_members, at_ms = _payload(payload), _moment_ms(happened)
    with connected(url) as client:
        announced = client.signals.announce(
            name, given(param or ()), signal_id=signal_id, happened_at_ms=at_ms, payload=payload_members
        )
    output.show(announced, form, _show_announced)


def _show_announced(announced: "Announced") -> None:
    output.data(f"{announced.name} {announced.sequence if announced.sequence is not None else '-'} {announced.status}")
    if announced.status == "TOO_LATE":
        output.say("the signal was refused: it is too old to tell whether it is a duplicate")
    elif announced.status == "DUPLICATED":
        output.say(f"duplicate of signal {announced.duplicate_of}")
    else:
        explain = output.command("signal", "explain", announced.name, announced.sequence or "latest")
        output.say(f"to show what it led to: {explain}")


def _payload(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    try:
        value = strict_json(text)
    except (ValueError, RecursionError) as error:
        raise BadParam(f"Expected --payload to be JSON, but {error}") from None
    if not isinstance(value, dict):
        raise BadParam(f"Expected --payload to be an object, but found a {type(value).__name__}")
    return value


def _moment_ms(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadParam(f"Expected --time as ISO 8601 or in milliseconds since 1970, but found {text!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@group.command("list")
def list_signals(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Signal name. Default: list all names.")] = None,
    *,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Show only names that begin with this text.")
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List the names of signals, or the signals of one name, latest first.

    \b
    Examples:
      kapelle signal list --prefix orders/
      kapelle signal list orders/eu -n 5
    """
    with connected(url) as client:
        if name is None:
            names = client.signals.names(prefix=prefix, limit=limit, cursor=cursor)
            tables.show_page(
                names,
                form,
                ("name", "signals", "duplicates", "too late", "triggers", "steps"),
                lambda record: (
                    record.name,
                    record.signals,
                    record.duplicates,
                    record.too_late,
                    record.triggers,
                    record.waiting_steps,
                ),
            )
            return
        page = client.signals.list(name, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("sequence", "id", "announced", "params"),
        lambda record: (record.sequence, record.signal_id, tables.at(record.create_time), _compact(record.params)),
    )


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@group.command()
def show(name: Name, sequence: Sequence = "latest", *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Show one signal.

    \b
    Examples:
      kapelle signal show orders/eu 12
      kapelle signal show orders/eu -o json
    """
    with connected(url) as client:
        record = client.signals.get(name, number(sequence))
    output.show(record, form, _show)


def _show(record: "SignalRecord") -> None:
    tables.pairs(
        [
            ("name", record.name),
            ("sequence", record.sequence),
            ("id", record.signal_id),
            ("params", _compact(record.params)),
            ("payload", _compact(record.payload)),
            ("source", _compact(record.source)),
            ("happened", tables.at(record.happened_time)),
            ("announced", tables.at(record.create_time)),
        ]
    )


@group.command()
def explain(name: Name, sequence: Sequence = "latest", *, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Show what each trigger and step did with a signal, and why.

    \b
    Examples:
      kapelle signal explain orders/eu 12
      kapelle signal explain orders/eu -o json
    """
    with connected(url) as client:
        explanation = client.signals.explain(name, number(sequence))
    output.show(explanation, form, _explain)


def _explain(explanation: "Explanation") -> None:
    again = explanation.repetitions.count
    tables.pairs(
        [
            ("signal", f"{explanation.name} {explanation.sequence}"),
            ("id", explanation.signal_id),
            ("params", _compact(explanation.params)),
            ("announced", tables.at(explanation.create_time)),
            ("repeated", f"{again} times" if again else None),
        ]
    )
    tables.stdout().print()
    tables.show(
        ("who", "verdict", "why"),
        [(_who(verdict), verdict.verdict, verdict.reason) for verdict in explanation.verdicts],
    )
    if not explanation.verdicts:
        output.say("no trigger or step subscribed to this signal when it arrived")
    if explanation.is_cut:
        output.say("more results exist that are not shown")


def _who(verdict: "Verdict") -> str:
    if verdict.type == "STEP":
        return f"step {verdict.workflow_id}/{verdict.workflow_instance_id}/{verdict.step_id}"
    return f"trigger {verdict.workflow_id} {verdict.trigger_id}"


@group.command()
def lineage(
    name: Name,
    sequence: Sequence = "latest",
    *,
    direction: Annotated[
        Direction,
        typer.Option("--direction", help="Show the effects of the signal (forward), its causes (backward), or both."),
    ] = (Direction.BOTH),
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", min=1, max=20, help="Follow at most N edges from the signal.")
    ] = 20,
    url: Url = URL,
    form: GraphOutput = GraphForm.TEXT,
) -> None:
    """Show the lineage of a signal: the instances and signals that led to it, and those that it led to.

    \b
    Examples:
      kapelle signal lineage orders/eu 12
      kapelle signal lineage orders/eu 12 --direction backward -o dot | dot -Tsvg > lineage.svg
      kapelle signal lineage orders/eu 12 --depth 3 -o mermaid
    """
    with connected(url) as client:
        graph = client.signals.lineage(name, number(sequence), direction=direction.value, depth=depth)
    output.show(
        graph,
        form,
        lineages.show,
        dot=lambda graph: output.data(lineages.as_dot(graph)),
        mermaid=lambda graph: output.data(lineages.as_mermaid(graph)),
    )


@group.command()
def refused(
    name: Name,
    *,
    signal_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Show only announcements with this signal id.")
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List duplicate and late announcements.

    \b
    Examples:
      kapelle signal refused orders/eu
      kapelle signal refused orders/eu --id order-4711
    """
    with connected(url) as client:
        page = client.signals.refused(name, signal_id=signal_id, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("id", "status", "duplicate of", "announced", "source"),
        lambda record: (
            record.signal_id,
            record.status,
            record.duplicate_of,
            tables.at(record.create_time),
            _compact(record.source),
        ),
    )
