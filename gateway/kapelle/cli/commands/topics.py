"""`kapelle topics`: compare the topics in Kafka with the topology, and create or update them."""

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from kapelle.cli.acls import Acl, acls
from kapelle.cli.errors import UnknownProcessor
from kapelle.cli.options.output import AclForm, AclOutput, Output
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.reach import reaching
from kapelle.cli.text import output
from kapelle.cli.text.output import Form
from kapelle.cli.topic_plan import REPLICATION_DEFAULT, mendable, planned, wrong
from kapelle.topology.errors import InputLost
from kapelle.topology.kafka import notes
from kapelle.topology.kafka.inputs import vanished
from kapelle.topology.kafka.topics import Change, Do, Topics

SETTLE_S = 0.05

group = typer.Typer(name="topics", help="Plan, create and verify the topics of a topology.", no_args_is_help=True)


Names = Annotated[list[str], typer.Argument(metavar="NAMES", help="Processors whose changelogs to adopt.")]
Replication = Annotated[
    int,
    typer.Option(
        "--replication",
        metavar="N",
        min=-1,
        max=1_000,
        help="Create topics with N replicas, and require at least N of existing topics. -1 uses the "
        "default of the broker.",
    ),
]


@group.command()
@takes_target(*KAFKA)
def plan(
    *,
    target: Target,
    replication: Replication = REPLICATION_DEFAULT,
    form: Output = Form.TEXT,
) -> None:
    """Show what `kapelle topics apply` would change. Nothing is changed.

    \b
    Examples:
      kapelle topics plan --bootstrap-servers 127.0.0.1:9092
      kapelle topics plan --config client.properties -o json
    """
    changes = planned(target, replication)
    output.show(changes, form, _show)
    if not changes:
        output.say("the topics match the topology")
    elif mendable(changes):
        output.say(f"to apply it: {target.command('topics', 'apply')}")


@group.command()
@takes_target(*KAFKA)
def apply(
    *,
    target: Target,
    replication: Replication = REPLICATION_DEFAULT,
    form: Output = Form.TEXT,
) -> None:
    """Create missing topics and update settings that differ.

    Topics are never deleted, and their partitions are never changed. The exit code is 4 if differences remain that need
    a decision. The command can be repeated safely.

    \b
    Examples:
      kapelle topics apply --bootstrap-servers 127.0.0.1:9092
      kapelle topics apply --bootstrap-servers kafka-1:9092,kafka-2:9092 --replication 3 --partitions 48
    """
    topology, settings = target.topology(), target.kafka()
    with reaching(settings):
        topics = Topics(topology, settings, replication=replication)
        before = topics.plan()
        topics.apply()
        left = _settled(topics, target.timeout_s)
    done = [change for change in before if change not in left]
    output.show(done, form, _show)
    output.say(summary(done))
    if left:
        raise wrong(left, target)


@group.command()
@takes_target(*KAFKA)
def verify(
    *,
    target: Target,
    replication: Replication = REPLICATION_DEFAULT,
) -> None:
    """Check that the topics match the topology. The exit code is 4 if they do not.

    The command also checks that no record was deleted before its processor read it: see --on-lost-input of
    `kapelle processors run`.

    `kapelle processors run` makes the same checks before it starts.

    \b
    Examples:
      kapelle topics verify --bootstrap-servers 127.0.0.1:9092
      kapelle topics verify --config client.properties --prefix staging --replication 3
    """
    changes = planned(target, replication)
    if changes:
        raise wrong(changes, target)
    _check_inputs(target)
    output.say("the topics match the topology")


@group.command()
@takes_target(*KAFKA)
def adopt(
    names: Names,
    *,
    target: Target,
) -> None:
    """Adopt changelogs that were deleted and created again. The processors continue with their current content.

    Before that, the processors refuse to start: their tables would contain only the records of the new changelogs.
    Restore the records from a copy first if you have one. Stop all members before you run this.

    \b
    Examples:
      kapelle topics adopt counting --bootstrap-servers 127.0.0.1:9092
      kapelle topics adopt counting joining --config client.properties --prefix staging
    """
    topology, settings = target.topology(), target.kafka()
    if unknown := sorted(set(names) - set(topology.processors)):
        raise UnknownProcessor(unknown, sorted(topology.processors))
    with reaching(settings):
        for name in names:
            count = notes.adopt(topology, settings, name)
            output.say(f"{name}: {output.counted(count, 'offset')} released from the old changelog")


@group.command("acls")
@takes_target("app", "prefix")
def show_acls(
    *,
    target: Target,
    form: AclOutput = AclForm.TEXT,
) -> None:
    """Show the minimum rights that each kind of process needs in Kafka. This does not connect to Kafka.

    The commands use the names of the roles as principals: replace them with your own.

    \b
    Examples:
      kapelle topics acls
      kapelle topics acls --prefix staging -o commands
    """
    output.show(acls(target.topology()), form, _show_acls, commands=_show_commands)


def _show_acls(acls: Sequence[Acl]) -> None:
    for acl in acls:
        name = f"{acl.name}*" if acl.prefixed else acl.name
        output.data(f"{acl.role:<12}{acl.resource:<18}{name:<34}{', '.join(acl.operations)}")


def _show_commands(acls: Sequence[Acl]) -> None:
    for acl in acls:
        output.data(acl.command())


def summary(done: Sequence[Change]) -> str:
    """What was done, in one line: 33 topics created, 1 topic updated."""
    created = sum(change.do is Do.CREATE for change in done)
    counts = ((created, "created"), (len(done) - created, "updated"))
    return ", ".join(f"{output.counted(count, 'topic')} {what}" for count, what in counts if count) or "nothing to do"


def _check_inputs(target: Target) -> None:
    """Refuse inputs that have lost what their processors have not read."""
    topology, settings = target.topology(), target.kafka()
    with reaching(settings):
        for name in topology.processors:
            if losses := vanished(topology, settings, name, settings.request_timeout_s):
                raise InputLost.of(name, losses)


def _settled(topics: Topics, timeout_s: float) -> list[Change]:
    """What is left once the brokers show what was done. They learn of it a moment after it was acknowledged."""
    until = time.monotonic() + timeout_s
    while True:
        left = topics.plan()
        if not mendable(left) or time.monotonic() > until:
            return left
        time.sleep(SETTLE_S)


def _show(changes: Sequence[Change]) -> None:
    for change in changes:
        output.data(f"{change.do.value:9}  {change}")
