"""Options that name times: schedules, zones and periods."""

from typing import Annotated

import typer

Every = Annotated[
    str | None, typer.Option("--every", metavar="INTERVAL", help="Use an interval such as 90m, 6h or 1d.")
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="Use the clock of this zone, such as Europe/Berlin. Default: UTC, or the zone of the time trigger.",
    ),
]
TriggerId = Annotated[
    str | None, typer.Option("--trigger", metavar="ID", help="Name a time trigger. `kapelle trigger list` shows ids.")
]
