"""The route of records through a program: its input, its output topic, and the expected output."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.workload import COUNTED, HEADERS, PARTITIONS, Counted, Given, faults, ticks

TOPICS_TIMEOUT_S = 30


@dataclass(frozen=True)
class Route:
    """Names are without the prefix of a run."""

    source: str
    sink: str
    group: str
    create: Callable[[str, str], None]  # the topics, given the bootstrap servers and the prefix
    records: Callable[[int, str], list[Given]]  # so many, of a series: two series share no id
    identify: Callable[[Any], str]  # the id of the record that an output is for
    faults: Callable[[Iterable[Given], Iterable[Any]], list[str]]  # what is wrong with the outputs


def create_counting(bootstrap_servers: str, prefix: str) -> None:
    topics = [
        NewTopic(f"{prefix}.ticks", PARTITIONS, 1),
        NewTopic(f"{prefix}.counting.events", PARTITIONS, 1),
        NewTopic(f"{prefix}.counting.changelog", PARTITIONS, 1, config={"cleanup.policy": "compact"}),
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for created in admin.create_topics(topics).values():
        created.result(TOPICS_TIMEOUT_S)


def counted_id(message: Any) -> str:
    return str(COUNTED.decode(message.value())["id"])


def counting_faults(given: Iterable[Given], messages: Iterable[Any]) -> list[str]:
    """Each tick is counted once and correctly, and every output has its CloudEvents headers."""
    bare = 0
    outputs = []
    for message in messages:
        bare += not {name for name, _ in message.headers() or ()}.issuperset(HEADERS)
        outputs.append(Counted(**COUNTED.decode(message.value())))
    return faults(given, outputs) + [f"{bare} without the CloudEvents headers"] * bool(bare)


COUNTING = Route(
    source="ticks",
    sink="counting.events",
    group="counting",
    create=create_counting,
    records=ticks,
    identify=counted_id,
    faults=counting_faults,
)
