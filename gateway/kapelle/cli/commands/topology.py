"""`kapelle topology`: what runs, and what is between it."""

from enum import StrEnum
from typing import Annotated

import typer

from kapelle.cli.loading import DEFAULT_APP
from kapelle.cli.options.target import App, Partitions, Prefix, Target
from kapelle.cli.text import output
from kapelle.topology.describe import as_data, as_mermaid, as_text, describe


class Form(StrEnum):
    """How a topology is shown."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"


def topology(
    *,
    app: App = DEFAULT_APP,
    prefix: Prefix = None,
    partitions: Partitions = None,
    form: Annotated[Form, typer.Option("-o", "--output", help="A page, a flowchart, or data.")] = Form.TEXT,
) -> None:
    """Show processors, their tables and the streams between.

    Nothing is asked of Kafka: this is what the code says.

    \b
    Examples:
      kapelle topology
      kapelle topology --app shop.processors:topology
      kapelle topology -o mermaid > topology.mmd
      kapelle topology -o json
    """
    target = Target(app=app, prefix=prefix, partitions=partitions)
    described = describe(target.topology())
    match form:
        case Form.TEXT:
            output.data(as_text(described))
        case Form.MERMAID:
            output.data(as_mermaid(described))
        case Form.JSON:
            output.json(as_data(described))
    if not described.processors:
        output.say(f"{app} has no processors yet")
