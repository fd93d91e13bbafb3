"""Options of commands that send requests to a server."""

from typing import Annotated, Final

import typer

URL: Final = "http://127.0.0.1:8080"
TOKEN_VARIABLE: Final = "KAPELLE_TOKEN"  # noqa: S105 - the name of a variable

Url = Annotated[
    str,
    typer.Option(
        "--url", metavar="URL", envvar="KAPELLE_URL", help=f"The server. Its token is taken from {TOKEN_VARIABLE}."
    ),
]
WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="The id of a workflow.")]
InstanceId = Annotated[int, typer.Argument(metavar="INSTANCE", min=1, help="The number of an instance.")]
RunId = Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="A run of it; else the latest.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter: JSON, or else a string. Again for more."),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: it stands in the history.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", metavar="ID", help="The id of the request: the same one twice counts once."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Cursor = Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="Where the last page ended.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=200, help="How many at most.")]
