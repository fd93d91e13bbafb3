"""Options of commands that read history, which may be on Kafka, in a directory or in a file."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", file_okay=False, help="The directory of a `kapelle dev` that has stopped."),
]
File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", dir_okay=False, help="A file of `kapelle replay export`.")
]
PassOver = Annotated[
    bool, typer.Option("--pass-over-unknown", help="Go on without records whose schema is not known anywhere.")
]
