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
        help=f"URL of the server. The token is read from {TOKEN_VARIABLE}.",
    ),
]
WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Workflow id.")]
InstanceId = Annotated[int, typer.Argument(metavar="INSTANCE", min=1, help="Instance number.")]
RunId = Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Run number. Default: the latest run.")]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="Parameter. A value that is not JSON is a string. Repeatable."
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the history.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", metavar="ID", help="Request id. Requests with the same id take effect once."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Cursor = Annotated[
    str | None, typer.Option("--cursor", metavar="TEXT", help="Cursor that the previous page ended with.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=200, help="Maximum number of results.")]
