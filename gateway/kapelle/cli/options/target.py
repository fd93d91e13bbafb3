"""The options that several commands share, and what they come to: a topology and the way to Kafka."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from kapelle.cli.errors import BadProperty, NoServers
from kapelle.cli.loading import DEFAULT_APP, load_topology
from kapelle.topology.build import PARTITIONS_MAX, Topology
from kapelle.topology.kafka.config import KafkaSettings, is_secret

SERVERS: Final = "bootstrap.servers"
TIMEOUT_S: Final = 10.0

App = Annotated[
    str,
    typer.Option(
        "--app",
        metavar="MODULE:ATTRIBUTE",
        envvar="KAPELLE_APP",
        help="The topology: a Topology, or a function that gives one. The current folder is searched too.",
    ),
]
Prefix = Annotated[
    str | None, typer.Option("--prefix", metavar="NAME", help="What the names of topics and groups begin with.")
]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        metavar="N",
        min=1,
        max=PARTITIONS_MAX,
        help="Partitions of each stream that does not say otherwise.",
    ),
]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        envvar="KAPELLE_BOOTSTRAP_SERVERS",
        help="Where Kafka is, unless the file of --config says it.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Settings for librdkafka, a line name=value for each: the place for secrets.",
    ),
]
Extra = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="NAME=VALUE",
        help="A setting for librdkafka, over that of --config; begin it with producer., consumer. or admin. "
        "for one kind of client. Again for more.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, max=600, help="How long the broker may take to answer."),
]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, as it was given: so that a message can give a command that fits."""

    app: str = DEFAULT_APP
    prefix: str | None = None
    partitions: int | None = None
    servers: str | None = None
    config: Path | None = None
    extra: Sequence[str] = ()
    timeout_s: float = TIMEOUT_S

    def topology(self) -> Topology:
        return load_topology(self.app, prefix=self.prefix, partitions=self.partitions)

    def kafka(self) -> KafkaSettings:
        """How to reach Kafka. A flag counts before -X, and -X before the file."""
        given = properties(self.config, self.extra)
        servers = self.servers or given.get(SERVERS)
        if not servers:
            raise NoServers(f"Expected --bootstrap-servers, or {SERVERS} in the file of --config, but found neither")
        given.pop(SERVERS, None)
        # librdkafka would write each failed attempt to connect to stderr, twenty a second. What it says is asked for
        # once, when nothing works (see reach.py); -X log_level=6 brings it back.
        return KafkaSettings(
            bootstrap_servers=servers,
            request_timeout_s=self.timeout_s,
            extra={"log_level": "0"} | given,
        )

    def flags(self) -> list[str]:
        """The same on a command line, fit to be shown: without secrets."""
        named = (
            ("--bootstrap-servers", self.servers),
            ("--app", self.app if self.app != DEFAULT_APP else None),
            ("--prefix", self.prefix),
            ("--partitions", self.partitions),
            ("--config", self.config),
        )
        shown = [word for flag, value in named if value is not None for word in (flag, str(value))]
        for setting in self.extra:
            name, _, _ = setting.partition("=")
            shown += ["-X", f"{name}=•••" if is_secret(name) else setting]
        return shown

    def command(self, *words: str, but: Sequence[str] = ()) -> str:
        """A command with the same options, to be copied."""
        return shlex.join(["kapelle", *words, *self.flags(), *but])


def properties(path: Path | None, extra: Sequence[str]) -> dict[str, str]:
    """The settings of a file, then those of -X, by name. A message never repeats one: it may be a secret."""
    found: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            found |= _setting(line, f"on line {number} of {path}")
    for number, setting in enumerate(extra, 1):
        found |= _setting(setting, f"after -X number {number}")
    return found


def _setting(text: str, where: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadProperty(f"Expected name=value {where}, but found no {'name' if equals else 'equals sign'}")
    return {name.strip(): value.strip()}
