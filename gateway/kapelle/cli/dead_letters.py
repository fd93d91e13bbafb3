"""`kapelle dead-letters`: the older name of `kapelle dlq list`."""

from typing import Annotated

import typer

from kapelle.cli.dlq import LETTERS_MAX, Form, show_last
from kapelle.cli.loading import DEFAULT_APP
from kapelle.cli.options import TIMEOUT_S, App, Config, Extra, Prefix, Servers, Target, Timeout
from kapelle.cli.server import URL, Url

group = typer.Typer(name="dead-letters", help="Look at the records that were put aside.", no_args_is_help=True)


@group.callback()
def _dead_letters() -> None:
    """Look at the records that were put aside. The same as dlq."""


@group.command("list")
def list_(
    *,
    url: Url = URL,
    servers: Servers = None,
    app: App = DEFAULT_APP,
    prefix: Prefix = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=LETTERS_MAX, help="The last so many.")] = 20,
    config: Config = None,
    extra: Extra = None,
    timeout_s: Timeout = TIMEOUT_S,
    form: Annotated[Form, typer.Option("-o", "--output", help="A page, or data.")] = Form.TEXT,
) -> None:
    """Show the last dead letters, oldest first: the same as `kapelle dlq list`.

    \b
    Examples:
      kapelle dead-letters list --bootstrap-servers 127.0.0.1:9092
      kapelle dead-letters list --config client.properties --prefix staging -n 100 -o json
    """
    target = Target(servers=servers, app=app, prefix=prefix, config=config, extra=extra or (), timeout_s=timeout_s)
    show_last(target, count, form, url)
