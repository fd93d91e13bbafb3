"""`kapelle doctor`: check a deployment, and report what is wrong."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.text import Text

from kapelle.cli.acls import Role
from kapelle.cli.checks import broker, clocks, disk, groups, rights, topics
from kapelle.cli.checks.case import FREE_MB, Case, Check, Finding, Verdict, looked_at
from kapelle.cli.errors import ExitCode
from kapelle.cli.options.output import Output
from kapelle.cli.options.process import (
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    ProtocolOption,
    SessionTimeout,
    TransactionTimeout,
)
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.text import output
from kapelle.cli.text.output import Form
from kapelle.cli.text.tables import line, stdout
from kapelle.topology.kafka.config import Protocol

STYLES: Final = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.WRONG: "red"}
ADVICE: Final = "→ "

# In this order: what comes later often follows from what came before. Each is named for when it cannot be asked.
ON_KAFKA: Final[tuple[tuple[str, Check], ...]] = (
    ("version", broker.release),
    ("broker settings", broker.settings),
    ("internal topics", broker.internal),
    ("rights", rights.allowed),
    ("topics", topics.planned),
    ("partitions", topics.led),
    ("replicas", topics.kept),
    ("transactions", rights.tried),
    ("clock of the brokers", clocks.brokers),  # after a transaction
    ("clocks of writers", clocks.writers),
    ("groups", groups.members),
    ("offsets", groups.offsets),
    ("open transactions", groups.transactions),
)

StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Also check this state directory of processors."),
]
FreeMb = Annotated[
    int,
    typer.Option("--free-mb", metavar="MB", min=0, help="Require this much free space for the state directory."),
]
RoleOption = Annotated[Role, typer.Option("--role", help="Check the rights of this role: see `kapelle topics acls`.")]


@takes_target(*KAFKA)
def doctor(
    *,
    target: Target,
    role: RoleOption = Role.PROCESSORS,
    state_dir: StateDir = None,
    free_mb: FreeMb = FREE_MB,
    protocol: ProtocolOption = Protocol.CLASSIC,
    session_timeout_ms: SessionTimeout = SESSION_TIMEOUT_MS,
    transaction_timeout_ms: TransactionTimeout = TRANSACTION_TIMEOUT_MS,
    form: Output = Form.TEXT,
) -> None:
    """Check a deployment, report what is wrong, and say how to fix it.

    The command checks brokers, their settings, topics, groups, rights, clocks and, with --state-dir, the disk. The exit
    code is 1 if anything is wrong. A warning does not change the exit code.

    The command starts and aborts one transaction, PREFIX.doctor. It writes a file to the state directory and deletes
    it. It changes nothing else.

    \b
    Examples:
      kapelle doctor --bootstrap-servers 127.0.0.1:9092
      kapelle doctor --config client.properties --state-dir state --free-mb 20000
      kapelle doctor --bootstrap-servers 127.0.0.1:9092 --role api -o json
    """
    kafka = msgspec.structs.replace(
        target.kafka(),
        protocol=protocol,
        session_timeout_ms=session_timeout_ms,
        transaction_timeout_ms=transaction_timeout_ms,
    )
    case = Case(
        target=target, topology=target.topology(), settings=kafka, role=role, state_dir=state_dir, free_mb=free_mb
    )
    shown = output.show_each(findings(case), form, _show)
    counted = Counter(finding.verdict for finding in shown)
    output.say(", ".join(f"{counted[verdict]} {verdict}" for verdict in Verdict))
    if counted[Verdict.WRONG]:
        raise typer.Exit(ExitCode.FAILURE)


def findings(case: Case) -> Iterator[Finding]:
    """All findings, as they are made."""
    first = list(broker.reached(case))
    yield from first
    if not any(finding.verdict is Verdict.WRONG for finding in first):
        for name, check in ON_KAFKA:
            yield from looked_at(name, check, case)
    yield from disk.state(case)


def _show(finding: Finding) -> None:
    """One line, and below it what to do."""
    style = STYLES[finding.verdict]
    line([Text(finding.verdict.value, style), Text(finding.check), Text(finding.found)], [7, 37, 0])
    if finding.advice:
        stdout().print(Text(f"         {ADVICE}{finding.advice}", "dim"), soft_wrap=True)
