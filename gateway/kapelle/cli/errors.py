"""What a command can end with: its exit code, and one paragraph that says what was expected and what was found.

    CommandError
    ├── 1 failure
    │   └── AppFailed            the module or function behind --app raised
    ├── 2 usage
    │   ├── BadReference         --app is not MODULE:ATTRIBUTE
    │   ├── NotATopology         what --app names is something else, or cannot take the options given
    │   ├── NoServers            nothing says where Kafka is
    │   ├── BadProperty          -X or the file of --config holds something other than name=value
    │   └── BadClientSetting     librdkafka does not take a setting
    ├── 3 not found
    │   ├── AppMissing           no such module or attribute
    │   ├── UnknownProcessor     no such processor in the topology
    │   └── NoDeadLetters        the topic of dead letters is not there
    ├── 4 precondition
    │   ├── TopicsWrong          topics are not as the topology needs them
    │   ├── NothingToRun         the topology has no processors
    │   └── AddressTaken         something else listens where metrics should be served
    └── 5 unavailable
        └── Unreachable          no broker answers

Errors of the layers below get their codes in `exit_code`, and nowhere else.
"""

import traceback
from enum import IntEnum
from typing import ClassVar, Final

from confluent_kafka import KafkaError, KafkaException

from kapelle.processors.errors import ProcessorError
from kapelle.schemas import SchemaError
from kapelle.topology.errors import (
    BadSetting,
    BrokerRefused,
    CycleAborted,
    FoldError,
    HandlerFailed,
    InstanceFencedAgain,
    ProducerLost,
    TopicsDiffer,
    TopologyError,
)
from kapelle.topology.tables import RowVersionUnknown, StoreLocked, TableError


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    PRECONDITION = 4
    UNAVAILABLE = 5


MEANINGS: Final = {
    ExitCode.OK: "it was done",
    ExitCode.FAILURE: "it failed: the message says why",
    ExitCode.USAGE: "the command line or a setting is wrong",
    ExitCode.NOT_FOUND: "what was named is not there",
    ExitCode.PRECONDITION: "something must be mended first, or someone else is in the way: no retry helps",
    ExitCode.UNAVAILABLE: "the broker could not be reached in time: trying again may help",
}


class CommandError(Exception):
    """A command that cannot be carried out."""

    code: ClassVar[ExitCode] = ExitCode.FAILURE


class AppFailed(CommandError):
    """The code behind --app raised."""


class BadReference(CommandError):
    """--app is not of the form MODULE:ATTRIBUTE."""

    code = ExitCode.USAGE


class NotATopology(CommandError):
    """What --app names is not a topology, nor a function that gives one as asked for."""

    code = ExitCode.USAGE


class NoServers(CommandError):
    """Nothing says where Kafka is."""

    code = ExitCode.USAGE


class BadProperty(CommandError):
    """A setting that is not name=value. The message never repeats it: it may be a secret."""

    code = ExitCode.USAGE


class BadClientSetting(CommandError):
    """A setting that librdkafka does not know, or a value that it does not take."""

    code = ExitCode.USAGE


class AppMissing(CommandError):
    """There is no such module, or it has no such attribute."""

    code = ExitCode.NOT_FOUND


class UnknownProcessor(CommandError):
    """There is no such processor."""

    code = ExitCode.NOT_FOUND

    def __init__(self, unknown: list[str], known: list[str]) -> None:
        super().__init__(f"Expected processors among {', '.join(known)}, but found {', '.join(unknown)}")
        self.unknown = unknown


class NoDeadLetters(CommandError):
    """The topic of dead letters is not there."""

    code = ExitCode.NOT_FOUND

    def __init__(self, topic: str) -> None:
        super().__init__(f"Expected the topic {topic}, but it is not there: is --prefix right?")
        self.topic = topic


class TopicsWrong(CommandError):
    """Topics are missing or set otherwise."""

    code = ExitCode.PRECONDITION


class NothingToRun(CommandError):
    """A topology without processors."""

    code = ExitCode.PRECONDITION


class AddressTaken(CommandError):
    """The address for metrics is not free."""

    code = ExitCode.PRECONDITION


class Unreachable(CommandError):
    """No broker answered in time."""

    code = ExitCode.UNAVAILABLE


# The first that fits counts. Everything else is a failure.
CODES: Final = (
    (BadSetting, ExitCode.USAGE),
    (TopicsDiffer, ExitCode.PRECONDITION),
    (InstanceFencedAgain, ExitCode.PRECONDITION),
    (BrokerRefused, ExitCode.PRECONDITION),
    (StoreLocked, ExitCode.PRECONDITION),
    (RowVersionUnknown, ExitCode.PRECONDITION),
)
# These say all that the operator needs.
SPEAKING: Final = (CommandError, TopologyError, FoldError, ProcessorError, TableError, SchemaError)
AWAY: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)


def exit_code(error: Exception) -> ExitCode:
    """The code of an error, ours or of a layer below."""
    if isinstance(error, CommandError):
        return error.code
    if broker_is_away(error):
        return ExitCode.UNAVAILABLE
    return next((code for kind, code in CODES if isinstance(error, kind)), ExitCode.FAILURE)


def broker_is_away(error: Exception) -> bool:
    """Whether this says no more than that no broker answered."""
    if not isinstance(error, CycleAborted | ProducerLost | KafkaException):
        return False
    broker = kafka_error(error)
    return broker is None or broker.code() in AWAY


def kafka_error(error: BaseException) -> KafkaError | None:
    """What librdkafka said, if that is at the bottom of an error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KafkaException) and cause.args and isinstance(cause.args[0], KafkaError):
            return cause.args[0]
        cause = cause.__cause__
    return None


def paragraph(error: Exception) -> str:
    """What to tell the operator."""
    if isinstance(error, HandlerFailed):
        return (
            f"{error}{_line(error.__cause__)}. Nothing of that cycle was committed: mend the processor and start it "
            "again, or start it with --on-bug dead-letter to put such records aside"
        )
    if isinstance(error, SPEAKING):
        return str(error)
    said = kafka_error(error)
    if said is not None:
        return f"Kafka's client says: {said.str()}"
    if isinstance(error, OSError):
        return f"The system refused: {error}"
    return (
        f"Unexpected {with_line(error)}. This is a defect of Kapelle: `kapelle --debug` with the same words shows more"
    )


def with_line(error: BaseException) -> str:
    """An error with the line that raised it: what a traceback is read for, most of the time."""
    return f"{type(error).__name__}: {error}{_line(error)}"


def _line(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__) if error else []
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
