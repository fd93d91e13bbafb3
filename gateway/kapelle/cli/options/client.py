"""Options of commands that send requests to a server."""

from typing import Annotated, Final

import typer

URL: Final = "http://127.0.0.1:8080"
TOKEN_VARIABLE: Final = "KAPELLE_TOKEN"  # noqa: S105 - the name of a variable

Url = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="KAPELLE_URL",
        help=f"Use the server at this URL. The token is read from {TOKEN_VARIABLE}.",
    ),
]
WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Workflow id.")]
InstanceId = Annotated[int, typer.Argument(metavar="INSTANCE", min=1, help="Instance number.")]
RunId = Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Show run N. Default: the latest run.")]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="Set a parameter. A value that is not JSON is a string. Repeatable."
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Record this reason in the history.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Stop watching after this time.")
]
RequestId = Annotated[
    str | None,
    typer.Option(
        "--request-id", metavar="ID", help="Give the request this id. Requests with the same id take effect once."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Cursor = Annotated[
    str | None,
    typer.Option("--cursor", metavar="TEXT", help="Continue from this cursor. The previous page ends with it."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=200, help="Show at most N results.")]
