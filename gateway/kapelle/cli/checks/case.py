"""The parts that all checks use: findings, and a cluster that is asked each question once."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ConsumerGroupDescription,
    ResourceType,
)

from kapelle.broker import is_away, is_refused, is_timeout, seeks_coordinator
from kapelle.cli.acls import Role
from kapelle.cli.failures import kafka_error
from kapelle.cli.options.target import Target
from kapelle.topology.build import Topology
from kapelle.topology.errors import BadSetting, TopologyError, Unanswered
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made

FREE_MB: Final = 1_024
SLICE_S: Final = 0.1
SHORTLY_S: Final = 2.0  # what a cluster that answers at all takes many times over

Configs = dict[str, dict[str, str]]


class Verdict(StrEnum):
    """How grave a finding is."""

    OK = "ok"
    WARNING = "warning"  # it works, but not as well or as safely as it could
    WRONG = "wrong"  # it does not work, or will not for long


class Finding(msgspec.Struct, frozen=True):
    """What one check found, and what to do about it."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


class Case(msgspec.Struct, kw_only=True, dict=True):
    """Whom the doctor looks at: a topology on a cluster, in a role, with a state directory or without."""

    target: Target
    topology: Topology
    settings: KafkaSettings
    role: Role = Role.PROCESSORS
    state_dir: Path | None = None
    free_mb: int = FREE_MB
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    tried_at_ms: int | None = None  # when a transaction was begun, if one was
    is_patient: bool = True  # until something was asked for twice in vain
    has_groups: bool = True  # unless the brokers can keep none: then each question about one would hang

    @property
    def timeout_s(self) -> float:
        return self.settings.request_timeout_s

    @cached_property
    def admin(self) -> AdminClient:
        return made(AdminClient, self.settings.admin())

    @cached_property
    def metadata(self) -> ClusterMetadata:
        """The brokers and topics that this principal may see."""
        return self.admin.list_topics(timeout=self.timeout_s)

    @cached_property
    def brokers(self) -> list[int]:
        return sorted(self.metadata.brokers)

    @cached_property
    def broker_configs(self) -> Configs:
        """The settings of each broker, by its number."""
        return self._configs(ResourceType.BROKER, [str(number) for number in self.brokers])

    @cached_property
    def topic_configs(self) -> Configs:
        """The settings of our topics that are there, the broker's defaults among them."""
        return self._configs(ResourceType.TOPIC, self.there)

    @cached_property
    def there(self) -> list[str]:
        """Our topics that are there."""
        return [topic.name for topic in self.topology.topics() if topic.name in self.metadata.topics]

    def groups(self, names: Sequence[str], **options: object) -> dict[str, Future[ConsumerGroupDescription]]:
        """The descriptions of these groups by the brokers, each in a future.

        Asked for shortly first: on a new cluster, which keeps no groups until somebody asks for one, the first question
        often stays without an answer as long as one waits for it, and the second has it at once.
        """
        for timeout_s in (min(SHORTLY_S, self.timeout_s), self.timeout_s):
            answers = self.admin.describe_consumer_groups(list(names), request_timeout=timeout_s, **options)
            if timeout_s >= self.timeout_s or not any(_is_late(future) for future in answers.values()):
                break
        return dict(answers)

    def replicas(self, topic: str) -> int:
        """The replicas of the partition that has the fewest; 0 if there is no such topic."""
        description = self.metadata.topics.get(topic)
        return min((len(p.replicas) for p in description.partitions.values()), default=0) if description else 0

    def _configs(self, kind: ResourceType, names: Sequence[str]) -> Configs:
        if not names:
            return {}
        answers = self.admin.describe_configs(
            [ConfigResource(kind, name) for name in names], request_timeout=self.timeout_s
        )
        return {r.name: {k: e.value or "" for k, e in future.result().items()} for r, future in answers.items()}


Check = Callable[[Case], Iterator[Finding]]


def looked_at(name: str, check: Check, case: Case) -> Iterator[Finding]:
    """What a check finds. One that may not ask, or is not answered, says so: the others go on."""
    try:
        yield from _found(check, case)
    except (KafkaException, TopologyError) as error:
        cause = kafka_error(error)
        if isinstance(error, Unanswered):
            yield Finding(name, Verdict.WARNING, f"check failed: {error}", "Try again")
            return
        if cause is None or isinstance(error, BadSetting):
            raise
        advice = (
            "Run the check as a principal with the right to describe, or ignore this"
            if is_refused(cause)
            else "Try again"
        )
        yield Finding(name, Verdict.WARNING, f"check failed: {_told(cause)}", advice)


def _found(check: Check, case: Case) -> list[Finding]:
    """Asked twice at most, unless a group is being found: a new cluster keeps none until it is first asked for one."""
    until_s, is_again = time.monotonic() + case.timeout_s, False
    while True:
        try:
            findings = list(check(case))
        except (KafkaException, TopologyError) as error:
            cause = kafka_error(error)
            if cause is not None and seeks_coordinator(cause) and time.monotonic() < until_s:
                time.sleep(SLICE_S)
                continue
            if cause is None or not is_away(cause) or not case.is_patient:
                raise
            case.is_patient, is_again = False, True
        else:
            case.is_patient |= is_again
            return findings


def _is_late(future: Future[ConsumerGroupDescription]) -> bool:
    failure = future.exception()
    cause = None if failure is None else kafka_error(failure)
    return cause is not None and is_timeout(cause)


def _told(error: KafkaError) -> str:
    """What librdkafka says; of some errors it gives nothing but the request."""
    text = str(error.str())
    return f"{text}{error.name()}" if text.endswith(": ") else text
