"""The rights of this principal, compared with those that its role needs, and a transaction as a trial."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    ConsumerGroupDescription,
    TopicDescription,
)

from kapelle.broker import is_missing, is_refused
from kapelle.cli.acls import Acl, Role, acls
from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.topology.kafka.translate import made

NAME = "doctor"  # of the instance whose transaction is tried


def allowed(case: Case) -> Iterator[Finding]:
    """What is refused of the rights that `kapelle topics acls` lists for the role."""
    has = {"TOPIC": _of_topics(case), "GROUP": _of_groups(case)}
    refused = [
        (acl, name, missing)
        for acl in acls(case.topology)
        if acl.role is case.role
        for name, operations in has.get(acl.resource, {}).items()
        if (name.startswith(acl.name) if acl.prefixed else name == acl.name)
        and (missing := sorted(set(acl.operations) - operations))
    ]
    for acl, name, missing in refused:
        found = f"{case.role.value} lacks {', '.join(missing)} on the {acl.resource.lower()}"
        yield Finding(name, Verdict.WRONG, found, _only(acl, missing).command(case.settings.bootstrap_servers))
    if not refused:
        yield Finding("rights", Verdict.OK, f"{case.role.value} has all rights that can be checked")


def _only(acl: Acl, operations: list[str]) -> Acl:
    return Acl(acl.role, acl.resource, acl.name, prefixed=acl.prefixed, operations=tuple(operations))


def _groups(case: Case) -> list[str]:
    """The groups of a role that are known by their whole names."""
    if case.role is Role.PROCESSORS:
        return [case.topology.group(name) for name in case.topology.processors]
    rules = (acl for acl in acls(case.topology) if acl.role is case.role and acl.resource == "GROUP")
    return [acl.name for acl in rules if not acl.prefixed]


def _of_topics(case: Case) -> Mapping[str, set[str]]:
    # All that there should be: those that may not be described are not in the list of those that are there.
    names = TopicCollection([topic.name for topic in case.topology.topics()])
    answers = case.admin.describe_topics(names, include_authorized_operations=True, request_timeout=case.timeout_s)
    described = {name: _operations(future) for name, future in answers.items()}
    return {name: operations for name, operations in described.items() if operations is not None}


def _of_groups(case: Case) -> Mapping[str, set[str]]:
    names = _groups(case)
    if not names or not case.has_groups:
        return {}
    answers = case.groups(names, include_authorized_operations=True)
    described = {name: _operations(future) for name, future in answers.items()}
    return {name: operations for name, operations in described.items() if operations is not None}


def _operations(future: Future[TopicDescription] | Future[ConsumerGroupDescription]) -> set[str] | None:
    """The operations that are allowed: none at all if not even describing is. None, if there is nothing to describe."""
    try:
        return {operation.name for operation in future.result().authorized_operations or ()}
    except KafkaException as error:
        if is_missing(error.args[0]):
            return None
        if is_refused(error.args[0]):
            return set()
        raise


def tried(case: Case) -> Iterator[Finding]:
    """Whether a producer can begin transactions: that needs a right, a coordinator, and a time-out that is allowed."""
    if case.role is not Role.PROCESSORS:
        return
    producer = made(Producer, {**case.settings.producer(f"{case.topology.prefix}.{NAME}"), "statistics.interval.ms": 0})
    began_at_ms = case.clock_ms()
    try:
        producer.init_transactions(case.timeout_s)
    except KafkaException as error:
        cause = error.args[0]
        advice = "Check the settings and topics of transactions above: transaction.state.log.*, and the coordinator"
        if is_refused(cause):
            needed = [a for a in acls(case.topology) if (a.role, a.resource) == (case.role, "TRANSACTIONAL_ID")]
            advice = f"{needed[0].command(case.settings.bootstrap_servers)}; or see transaction.max.timeout.ms above"
        yield Finding("transactions", Verdict.WRONG, f"a transaction could not be started: {cause.str()}", advice)
        return
    case.tried_at_ms = began_at_ms
    yield Finding("transactions", Verdict.OK, "a transaction was started and aborted")
