"""`kapelle topology`: what runs, and what is between it."""

from enum import StrEnum
from typing import Annotated

import typer

from kapelle.cli.options.target import TOPOLOGY, Target, takes_target
from kapelle.cli.text import output
from kapelle.topology.describe import as_data, as_mermaid, as_text, describe


class Form(StrEnum):
    """How a topology is shown."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"


@takes_target(*TOPOLOGY)
def topology(
    *,
    target: Target,
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
    described = describe(target.topology())
    match form:
        case Form.TEXT:
            output.data(as_text(described))
        case Form.MERMAID:
            output.data(as_mermaid(described))
        case Form.JSON:
            output.json(as_data(described))
    if not described.processors:
        output.say(f"{target.app} has no processors yet")
