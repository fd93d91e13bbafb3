"""The options that say which topology and which Kafka cluster a command works on, declared once."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from kapelle.cli.apps import DEFAULT_APP, load_topology
from kapelle.cli.errors import BadProperty, NoServers
from kapelle.cli.options.groups import Command, taking
from kapelle.topology.build import PARTITIONS_MAX, Topology
from kapelle.topology.kafka.config import KafkaSettings, is_secret

SERVERS: Final = "bootstrap.servers"
TIMEOUT_S: Final = 10.0


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The topology and the Kafka cluster that a command works on. Each field is an option of the command line.

    The fields keep what was given, so that a message can show a command with the same options.
    """

    servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            metavar="HOST:PORT,…",
            envvar="KAPELLE_BOOTSTRAP_SERVERS",
            help="Connect to these Kafka brokers. Not needed if the --config file has bootstrap.servers.",
        ),
    ] = None
    app: Annotated[
        str,
        typer.Option(
            "--app",
            metavar="MODULE:ATTRIBUTE",
            envvar="KAPELLE_APP",
            help="Use this topology: a Topology, or a function that returns one. The current directory is "
            "searched too.",
        ),
    ] = DEFAULT_APP
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="NAME", help="Use this prefix for the names of topics and groups.")
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            max=PARTITIONS_MAX,
            help="Use N partitions for each stream that does not set its own number.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            readable=True,
            help="Read librdkafka settings from this file, one name=value per line. Put secrets here.",
        ),
    ] = None
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="NAME=VALUE",
            help="Set a librdkafka setting. It overrides --config. The prefixes producer., consumer. and "
            "admin. limit it to one kind of client. Repeatable.",
        ),
    ] = None
    timeout_s: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, max=600, help="Wait this long for an answer from the broker."
        ),
    ] = TIMEOUT_S

    def topology(self) -> Topology:
        return load_topology(self.app, prefix=self.prefix, partitions=self.partitions)

    @property
    def names_kafka(self) -> bool:
        """Whether a flag, -X or the file of --config says where Kafka is."""
        return bool(self.servers) or SERVERS in properties(self.config, self.extra)

    def client(self) -> tuple[str, dict[str, str]]:
        """The bootstrap servers, and all other settings of a client. A flag overrides -X, and -X overrides the file."""
        given = properties(self.config, self.extra)
        servers = self.servers or given.get(SERVERS)
        if not servers:
            raise NoServers(f"Expected --bootstrap-servers, or {SERVERS} in the file of --config, but found neither")
        given.pop(SERVERS, None)
        # librdkafka would write each failed attempt to connect to stderr, twenty a second. What it says is asked for
        # once, when nothing works (see reach.py); -X log_level=6 brings it back.
        return servers, {"log_level": "0"} | given

    def kafka(self) -> KafkaSettings:
        """The settings of the runtime for Kafka."""
        servers, extra = self.client()
        return KafkaSettings(bootstrap_servers=servers, request_timeout_s=self.timeout_s, extra=extra)

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
        for setting in self.extra or ():
            name, _, _ = setting.partition("=")
            shown += ["-X", f"{name}=•••" if is_secret(name) else setting]
        return shown

    def command(self, *words: str, but: Sequence[str] = ()) -> str:
        """A command with the same options, to be copied."""
        return shlex.join(["kapelle", *words, *self.flags(), *but])


# The options that a command takes, by the fields of Target.
KAFKA: Final = ("servers", "app", "prefix", "partitions", "config", "extra", "timeout_s")
DEAD_LETTERS: Final = ("servers", "app", "prefix", "config", "extra", "timeout_s")
TASKS: Final = ("servers", "prefix", "config", "extra")
TOPOLOGY: Final = ("app", "prefix", "partitions")


def takes_target(*names: str) -> Callable[[Command], Command]:
    """Replace the parameter `target` of a command by these options. The command gets one `Target`."""
    return taking("target", Target, names, {})


def properties(path: Path | None, extra: Sequence[str] | None) -> dict[str, str]:
    """The settings of a file, then those of -X, by name. A message never repeats one: it may be a secret."""
    properties: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            properties |= _setting(line, f"on line {number} of {path}")
    for number, setting in enumerate(extra or (), 1):
        properties |= _setting(setting, f"after -X number {number}")
    return properties


def _setting(text: str, where: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadProperty(f"Expected name=value {where}, but found no {'name' if equals else 'equals sign'}")
    return {name.strip(): value.strip()}
