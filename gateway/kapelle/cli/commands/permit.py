"""`kapelle permit`: limit how many steps run at the same time, and show who holds permits and who waits."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from kapelle.cli.errors import BadParam
from kapelle.cli.options.client import URL, Cursor, Limit, RequestId, Url
from kapelle.cli.options.output import Output
from kapelle.cli.params import strict_json
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form
from kapelle.cli.text.permits import duration

if TYPE_CHECKING:
    from kapelle.client import LimitRecord, PermitHolder, PermitWaiter

group = typer.Typer(
    name="permit",
    help="Limit how many steps run at the same time, and show who holds permits and who waits.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Kind(StrEnum):
    """What is limited."""

    TAG = "tag"
    WORKFLOW = "workflow"
    TREE = "tree"


class Shown(msgspec.Struct, frozen=True):
    """A limit with its holders and its queue, as far as they are shown."""

    limit: "LimitRecord"
    holders: "list[PermitHolder]"
    waiting: "list[PermitWaiter]"


Tag = Annotated[str, typer.Argument(metavar="TAG", help="Tag. It may contain slashes.")]
OfKind = Annotated[Kind, typer.Option("--kind", help="Show the limit of a tag, a workflow or a tree.")]


@group.command("set")
def set_limit(
    tag: Tag,
    max_allowed: Annotated[
        int, typer.Argument(metavar="N", min=0, help="How many steps may run at the same time. 0 admits none.")
    ],
    *,
    extra: Annotated[
        str | None, typer.Option("--extra", metavar="JSON", help="Keep these keys with the limit, a JSON object.")
    ] = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Limit how many steps with a tag run at the same time, or change the limit.

    A lower limit stops nothing that runs. A higher one admits at once.

    \b
    Examples:
      kapelle permit set gpu 4
      kapelle permit set team/warehouse 0
      kapelle permit set gpu 4 --extra '{"team": "ml"}'
    """
    more = _extra(extra)
    with connected(url) as client:
        done = client.permits.set(tag, max_allowed, extra=more, request_id=request_id)
    output.show_outcome(done, form, f"{tag} has a limit of {max_allowed}")


def _extra(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    try:
        extra = strict_json(text)
    except (ValueError, RecursionError) as error:
        raise BadParam(f"Expected --extra to be JSON, but {error}") from None
    if not isinstance(extra, dict):
        raise BadParam(f"Expected --extra to be an object, but found a {type(extra).__name__}")
    return extra


@group.command()
def remove(tag: Tag, *, request_id: RequestId = None, url: Url = URL, form: Output = Form.TEXT) -> None:
    """Remove the limit of a tag. All steps that wait for it are admitted.

    \b
    Examples:
      kapelle permit remove gpu
    """
    with connected(url) as client:
        done = client.permits.remove(tag, request_id=request_id)
    output.show_outcome(done, form, f"{tag} has no limit")


@group.command("list")
def list_limits(
    *,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Show only limits of tags, workflows or trees.")] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Show only names that begin with this text. Expects --kind.")
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """List limits, how many steps hold a permit, and how many wait.

    \b
    Examples:
      kapelle permit list
      kapelle permit list --kind tag --prefix team/
    """
    with connected(url) as client:
        page = client.permits.list(None if kind is None else kind.value, prefix=prefix, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("kind", "name", "limit", "held", "waiting", "first waits since", "set by"),
        lambda row: (
            row.kind,
            row.name,
            row.max_allowed,
            row.held,
            row.waiting,
            tables.at(row.oldest_wait_time),
            row.author,
        ),
    )


@group.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Tag, workflow id, or root of a tree such as etl/12.")],
    *,
    kind: OfKind = Kind.TAG,
    limit: Limit = 20,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show a limit: the steps that hold a permit, and those that wait, in the order of the queue.

    \b
    Examples:
      kapelle permit show gpu
      kapelle permit show etl --kind workflow
      kapelle permit show etl/12 --kind tree -n 100 -o json
    """
    with connected(url) as client:
        of_name = client.permits.get(name, kind.value)
        holders = client.permits.holders(name, kind.value, limit=limit)
        waiting = client.permits.waiting(name, kind.value, limit=limit)
    output.show(Shown(of_name, holders.elements, waiting.elements), form, _show)


def _show(shown: Shown) -> None:
    limit = shown.limit
    tables.pairs(
        [
            (limit.kind, limit.name),
            ("limit", limit.max_allowed),
            ("held", limit.held),
            ("waiting", limit.waiting),
            ("set by", limit.author),
            ("set", tables.at(limit.modify_time)),
            *((f"  {name}", msgspec.json.encode(value).decode()) for name, value in limit.extra_info.items()),
        ]
    )
    if shown.holders:
        tables.stdout().print()
        tables.show(
            ("holder", "run", "step", "attempt", "criticality", "since", "waited"),
            [
                (*_whose(holder), holder.criticality, tables.at(holder.granted_time), duration(holder.waited_ms))
                for holder in shown.holders
            ],
        )
    if shown.waiting:
        tables.stdout().print()
        tables.show(
            ("place", "waits", "run", "step", "attempt", "criticality", "since", "for"),
            [
                (
                    waiter.place,
                    *_whose(waiter),
                    waiter.criticality,
                    tables.at(waiter.queued_time),
                    duration(waiter.waiting_ms),
                )
                for waiter in shown.waiting
            ],
        )
    hidden = limit.held - len(shown.holders) + limit.waiting - len(shown.waiting)
    if hidden > 0:
        output.say("more results exist that are not shown: --limit")


def _whose(asking: "PermitHolder | PermitWaiter") -> tuple[str, int, str, int]:
    return (
        f"{asking.workflow_id} {asking.workflow_instance_id}",
        asking.workflow_run_id,
        asking.step_id,
        asking.step_attempt_id,
    )
