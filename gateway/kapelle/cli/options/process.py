"""Options of commands that run until they are stopped: processors, relays, the API, workers."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from kapelle.cli.logs import LogFormat, LogLevel
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.settings import OnBug

# The runtime's own defaults, shown in the help.
_DEFAULTS: Final = KafkaSettings(bootstrap_servers="unused")
SESSION_TIMEOUT_MS: Final = _DEFAULTS.session_timeout_ms
TRANSACTION_TIMEOUT_MS: Final = _DEFAULTS.transaction_timeout_ms
STATISTICS_MS: Final = _DEFAULTS.statistics_ms
CONCURRENCY: Final = 8


class Begin(StrEnum):
    """Where a group starts to read when it has no offsets."""

    EARLIEST = "earliest"
    LATEST = "latest"


ProtocolOption = Annotated[
    Protocol, typer.Option("--protocol", help="Group protocol. consumer is the protocol of KIP-848.")
]
SessionTimeout = Annotated[
    int,
    typer.Option(
        "--session-timeout-ms",
        metavar="MS",
        min=1,
        help="A process that sends no heartbeat for this long loses its partitions. For the classic protocol only.",
    ),
]
TransactionTimeout = Annotated[
    int,
    typer.Option(
        "--transaction-timeout-ms",
        metavar="MS",
        min=1,
        help="The broker aborts a transaction that is open for this long.",
    ),
]
OnBugOption = Annotated[
    OnBug,
    typer.Option("--on-bug", help="What to do when the code of a processor raises: stop, or write a dead letter."),
]
SetAside = Annotated[
    list[str] | None,
    typer.Option(
        "--set-aside",
        metavar="TOPIC-PARTITION@OFFSET",
        help="Write a dead letter for this record instead of processing it. Repeatable.",
    ),
]
BeginOption = Annotated[Begin, typer.Option("--from", help="Where a new group starts to read.")]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="KAPELLE_REGISTRY",
        help="URL of the schema registry. Credentials are read from KAPELLE_REGISTRY_AUTH.",
    ),
]
Concurrency = Annotated[
    int,
    typer.Option(
        "--concurrency", metavar="N", min=1, max=10_000, help="Maximum number of steps that run at the same time."
    ),
]
HttpAllow = Annotated[
    list[str] | None,
    typer.Option(
        "--http-allow",
        metavar="HOST",
        help="Also run Http steps that call this host. *.NAME allows subdomains. Repeatable.",
    ),
]
Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="Address to listen on. An address other than loopback requires tokens."
    ),
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Port to listen on. 0 selects a free port.")
]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="File of access tokens. Each line has a role (viewer, operator, admin) and a token. Or set "
        "KAPELLE_TOKENS=role:token,…",
    ),
]
HooksFile = Annotated[
    Path | None,
    typer.Option(
        "--hooks",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="File that maps webhooks and Amazon SNS messages to signals. It is reloaded when it changes. Secrets are "
        "in this file, or in KAPELLE_HOOK_SECRETS=name:secret,…",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65_535,
        help="Serve /metrics, /health and /ready on 127.0.0.1; 0 selects a free port.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", dir_okay=False, help="Write metrics to this file every five seconds."),
]
LogFormatOption = Annotated[LogFormat, typer.Option("--log-format", help="Format of log lines.")]
LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="Minimum log level.")]
