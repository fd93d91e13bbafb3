"""The option that says how a result is written."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from kapelle.cli.text.output import Form

OUTPUT: Final = typer.Option("-o", "--output", help="Print the result in this format.")


class GraphForm(StrEnum):
    """How a graph is written."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"


class ChartForm(StrEnum):
    """How a topology is written."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"


class AclForm(StrEnum):
    """How rights are written."""

    TEXT = "text"
    JSON = "json"
    COMMANDS = "commands"


Output = Annotated[Form, OUTPUT]
GraphOutput = Annotated[GraphForm, OUTPUT]
ChartOutput = Annotated[ChartForm, OUTPUT]
AclOutput = Annotated[AclForm, OUTPUT]
