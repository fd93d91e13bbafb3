"""Options of commands that read history, which may be on Kafka, in a directory or in a file."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", file_okay=False, help="Read the data directory of a `kapelle dev` that is not running."
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", dir_okay=False, help="Read a file that `kapelle replay export` has written."
    ),
]
PassOver = Annotated[bool, typer.Option("--pass-over-unknown", help="Skip records whose schema is unknown.")]
