"""`kapelle topics`: what Kafka lacks for a topology, and mending it."""

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
from kapelle.topology.kafka.topics import Change, Topics

SETTLE_S = 0.05

group = typer.Typer(name="topics", help="Plan, make and verify the topics of a topology.", no_args_is_help=True)


Names = Annotated[list[str], typer.Argument(metavar="NAMES", help="The processors whose changelogs to use.")]
Replication = Annotated[
    int,
    typer.Option(
        "--replication",
        metavar="N",
        min=-1,
        max=1_000,
        help="Replicas of new topics, and at least so many of those that are there; -1 leaves it to the broker.",
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
    """Show what `apply` would do. Changes nothing.

    \b
    Examples:
      kapelle topics plan --bootstrap-servers 127.0.0.1:9092
      kapelle topics plan --config client.properties -o json
    """
    changes = planned(target, replication)
    output.show(changes, form, _show)
    if not changes:
        output.say("the topics are as they must be")
    elif mendable(changes):
        output.say(f"to do it: {target.command('topics', 'apply')}")


@group.command()
@takes_target(*KAFKA)
def apply(
    *,
    target: Target,
    replication: Replication = REPLICATION_DEFAULT,
    form: Output = Form.TEXT,
) -> None:
    """Create what is missing and configure what differs. Deletes nothing and never changes partitions.

    Ends with code 4 if something is left that only you can decide. Doing it again does no harm.

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
    output.say(f"{output.counted(len(done), 'topic')} mended" if done else "nothing to do")
    if left:
        raise wrong(left, target)


@group.command()
@takes_target(*KAFKA)
def verify(
    *,
    target: Target,
    replication: Replication = REPLICATION_DEFAULT,
) -> None:
    """Check that the topics are as the topology needs them. Ends with code 4 if they are not.

    They must also hold what each processor has not read yet: see --on-lost-input of `kapelle processors run`.

    `kapelle processors run` does the same before it starts.

    \b
    Examples:
      kapelle topics verify --bootstrap-servers 127.0.0.1:9092
      kapelle topics verify --config client.properties --prefix staging --replication 3
    """
    changes = planned(target, replication)
    if changes:
        raise wrong(changes, target)
    _check_inputs(target)
    output.say("the topics are as they must be")


@group.command()
@takes_target(*KAFKA)
def adopt(
    names: Names,
    *,
    target: Target,
) -> None:
    """Use the changelogs of processors as they are now, after they were deleted and made anew.

    Until then their members refuse to start, because the tables would hold only what the new changelogs hold. Bring
    the records back from a copy first if you have one. All members must have stopped.

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
            output.say(f"{name}: {output.counted(count, 'offset')} released from the changelog of before")


@group.command("acls")
@takes_target("app", "prefix")
def show_acls(
    *,
    target: Target,
    form: AclOutput = AclForm.TEXT,
) -> None:
    """Show the least rights that each kind of process needs in Kafka. Nothing is asked of Kafka.

    Names of principals in the commands are those of the roles: put your own in their places.

    \b
    Examples:
      kapelle topics acls
      kapelle topics acls --prefix staging -o commands
    """
    output.show(acls(target.topology()), form, _show_acls, commands=_show_commands)


def _show_acls(found: Sequence[Acl]) -> None:
    for one in found:
        name = f"{one.name}*" if one.prefixed else one.name
        output.data(f"{one.role:<12}{one.resource:<18}{name:<34}{', '.join(one.operations)}")


def _show_commands(found: Sequence[Acl]) -> None:
    for one in found:
        output.data(one.command())


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
