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
    """Where a group begins that has not read before."""

    EARLIEST = "earliest"
    LATEST = "latest"


ProtocolOption = Annotated[
    Protocol, typer.Option("--protocol", help="How members share partitions out; consumer is KIP-848.")
]
SessionTimeout = Annotated[
    int,
    typer.Option(
        "--session-timeout-ms",
        metavar="MS",
        min=1,
        help="After so long without a sign of life a process loses its partitions (classic; else it is the broker's).",
    ),
]
TransactionTimeout = Annotated[
    int,
    typer.Option("--transaction-timeout-ms", metavar="MS", min=1, help="When the broker gives a transaction up."),
]
OnBugOption = Annotated[
    OnBug, typer.Option("--on-bug", help="When a processor's own code raises: stop, or put the record aside.")
]
SetAside = Annotated[
    list[str] | None,
    typer.Option(
        "--set-aside",
        metavar="TOPIC-PARTITION@OFFSET",
        help="Make a dead letter of this record, whatever it says. Again for more.",
    ),
]
BeginOption = Annotated[Begin, typer.Option("--from", help="Where to begin, the first time.")]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="KAPELLE_REGISTRY",
        help="The schema registry. User and password are taken from KAPELLE_REGISTRY_AUTH.",
    ),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="How many steps run at a time.")
]
HttpAllow = Annotated[
    list[str] | None,
    typer.Option(
        "--http-allow", metavar="HOST", help="Serve Http steps too, to this host; *.NAME for all below. Again for more."
    ),
]
Host = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; other than loopback needs tokens.")
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Where to listen; 0 takes any free port.")
]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="Who may ask: lines of a role (viewer, operator, admin) and a token. Or KAPELLE_TOKENS=role:token,…",
    ),
]
HooksFile = Annotated[
    Path | None,
    typer.Option(
        "--hooks",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="How webhooks and Amazon SNS become signals; read anew when it changes. Secrets there, or in "
        "KAPELLE_HOOK_SECRETS=name:secret,…",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65_535,
        help="Serve /metrics, /health and /ready on 127.0.0.1; 0 takes any free port.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", dir_okay=False, help="Write metrics to a file every five seconds."),
]
LogFormatOption = Annotated[LogFormat, typer.Option("--log-format", help="How log lines look.")]
LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="The least grave lines to show.")]
