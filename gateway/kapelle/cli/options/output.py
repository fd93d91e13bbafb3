"""The option that says how a result is written."""

from typing import Annotated

import typer

from kapelle.cli.text.output import Form

Output = Annotated[Form, typer.Option("-o", "--output", help="A table for people, or JSON for programs.")]
