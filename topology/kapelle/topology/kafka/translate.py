"""The meaning of a broker error for the runtime: what it must do now.

    CycleAborted     abort, rewind, go on       the transaction is ours to abort, or there was none
    ProducerLost     a new producer             fenced, fatal, or a commit whose outcome nobody can tell
    BrokerRefused    stop                       no retry can mend it: authorisation, unsupported version, size

The rule for commits is stricter than librdkafka's: a commit that timed out may be answered later, and with the
transaction protocol that librdkafka speaks a second commit could then meet the next transaction. So an unanswered
commit is never repeated; a new producer settles what became of it. Which code is of which kind, `kapelle.broker` says.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from kapelle.broker import is_producer_lost, is_refused
from kapelle.topology.errors import BadSetting, BrokerRefused, CycleAborted, ProducerLost, TopologyError

C = TypeVar("C")
T = TypeVar("T")


def meaning(error: KafkaError, doing: str) -> TopologyError:
    """What an error while producing, sending offsets, aborting or reading means for the runtime."""
    text = f"{doing}: {error.name()}: {error.str()}"
    if is_refused(error):
        return BrokerRefused(f"The broker refused to {text}")
    if is_producer_lost(error):
        return ProducerLost(text)
    return CycleAborted(text)


def commit_meaning(error: KafkaError) -> TopologyError:
    """As above, for a commit: only an error that demands an abort says for certain that nothing was committed."""
    cause = meaning(error, "commit")
    if isinstance(cause, CycleAborted) and not error.txn_requires_abort():
        return ProducerLost(str(cause))
    return cause


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn a broker error into its meaning."""
    try:
        yield
    except KafkaException as error:
        raise meaning(error.args[0], doing) from error


def made(client: Callable[[C], T], config: C) -> T:
    """A client with these settings, or the setting that librdkafka rejects."""
    try:
        return client(config)
    except KafkaException as error:
        raise BadSetting(f"librdkafka rejected the settings: {error.args[0].str()}") from error
