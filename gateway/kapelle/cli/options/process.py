"""Options of commands that run until they are stopped: processors, relays, the API, workers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from kapelle.cli.logs import LogFormat, LogLevel, logged_to_stderr
from kapelle.cli.options.groups import Command, taking
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
    Protocol, typer.Option("--protocol", help="Use this group protocol. consumer is the protocol of KIP-848.")
]
SessionTimeout = Annotated[
    int,
    typer.Option(
        "--session-timeout-ms",
        metavar="MS",
        min=1,
        help="Take the partitions from a process that sends no heartbeat for this long. For the classic protocol only.",
    ),
]
TransactionTimeout = Annotated[
    int,
    typer.Option(
        "--transaction-timeout-ms",
        metavar="MS",
        min=1,
        help="Let the broker abort a transaction that is open for this long.",
    ),
]
OnBugOption = Annotated[
    OnBug,
    typer.Option("--on-bug", help="Stop, or write a dead letter, when the code of a processor raises an error."),
]
SetAside = Annotated[
    list[str] | None,
    typer.Option(
        "--set-aside",
        metavar="TOPIC-PARTITION@OFFSET",
        help="Write a dead letter for this record instead of processing it. Repeatable.",
    ),
]
BeginOption = Annotated[
    Begin, typer.Option("--from", help="Start a new group at the earliest or at the latest record.")
]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="KAPELLE_REGISTRY",
        help="Use the schema registry at this URL. Credentials are read from KAPELLE_REGISTRY_AUTH.",
    ),
]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="Run at most N steps at the same time."),
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
        "--host", metavar="ADDRESS", help="Listen on this address. An address other than loopback requires tokens."
    ),
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Listen on this port. 0 selects a free port.")
]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="Read access tokens from this file. Each line has a role (viewer, operator, admin) and a "
        "token. Or set KAPELLE_TOKENS=role:token,…",
    ),
]
HooksFile = Annotated[
    Path | None,
    typer.Option(
        "--hooks",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Turn webhooks and Amazon SNS messages into signals by the rules in this file. The file is "
        "reloaded when it changes. Put secrets into this file, or into "
        "KAPELLE_HOOK_SECRETS=name:secret,…",
    ),
]


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """How a process of a command logs, shows its metrics and stays in its group. Each field is an option."""

    session_timeout_ms: SessionTimeout = SESSION_TIMEOUT_MS
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Serve /metrics, /health and /ready on this port of 127.0.0.1. 0 selects a free port.",
        ),
    ] = None
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics", metavar="FILE", dir_okay=False, help="Write metrics to this file every five seconds."
        ),
    ] = None
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="Write log lines in this format.")] = (
        LogFormat.PAIRS
    )
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="Write log lines of this level and above.")] = (
        LogLevel.INFO
    )

    def logged(self) -> AbstractContextManager[None]:
        """Within this block, log lines go to stderr as the options say."""
        return logged_to_stderr(self.log_format, self.log_level)


# The options that a command takes, by the fields of Process.
LOGS: Final = ("log_format", "log_level")
SERVED: Final = ("metrics_port", *LOGS)
MEASURED: Final = ("metrics_port", "metrics_file", *LOGS)
RELAY: Final = ("session_timeout_ms", *MEASURED)


def takes_process(*names: str, **defaults: object) -> Callable[[Command], Command]:
    """Replace the parameter `process` of a command by these options. The command gets one `Process`."""
    return taking("process", Process, names, defaults)
