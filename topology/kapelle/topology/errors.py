"""The errors of the runtime, by who must act.

    TopologyError
    ├── author: the topology is not valid
    │   └── BadTopology            refused when it is built
    ├── operator: the environment must be corrected
    │   ├── BadSetting             a setting that the runtime owns, or that is not valid
    │   ├── TopicsDiffer           the topics differ from what the topology needs
    │   ├── ChangelogReplaced      the changelog is not the topic that the offsets were committed with
    │   ├── OffsetsLost            the changelog exists, but the committed offsets are missing
    │   ├── ChangelogShortened     the changelog ends before the offset of the local tables
    │   ├── InputLost              input was deleted before it was read
    │   │   ├── InputReplaced      an input topic was deleted and created again
    │   │   └── InputShortened     an input topic ends before what was read of it
    │   ├── InstanceFencedAgain    two processes use one instance name
    │   └── BrokerRefused          the broker refuses the client: authorisation, unsupported version
    └── runtime: the member continues by itself
        ├── CycleAborted           abort the cycle, rewind, continue
        │   ├── Unanswered         a broker did not answer a query: as above, and ask again
        │   └── ApplyFailed        `apply` raised: as above, and set the message aside at the next delivery
        └── ProducerLost           the transaction is lost: create a new producer, then as above

    FoldError
    ├── DecisionExhausted          `decide` exceeded its limit of time, memory or stack: given up, whatever the policy
    ├── HandlerFailed              `decide` or `apply` raised: a bug in a processor
    ├── KeyTooLarge                a key beyond the limit, read or written
    ├── NotUnderstood              a record that its processor cannot interpret
    ├── TimerNotSettled            a due timer is still due after the decision on it
    ├── UnexpectedType             a record of a type that its stream does not carry
    └── UnfitRecord                a record whose key or numbers do not fit its stream

Broker errors get one of three meanings in `kafka/translate.py`, and nowhere else: `CycleAborted`, `ProducerLost` or
`BrokerRefused`. `kapelle.broker` reads their codes.
"""

from collections.abc import Sequence

from kapelle.topology.log import KEY_BYTES_MAX, Cause, Loss

LOSSES_SHOWN_MAX = 10


class TopologyError(Exception):
    """Anything wrong with a topology or its surroundings."""


class BadTopology(TopologyError):
    """The topology cannot work as written. The message names the streams and what was expected."""


class BadSetting(TopologyError):
    """A setting cannot be what it was given. The message names it and the reason."""


class TopicsDiffer(TopologyError):
    """Topics are missing or differ from what is needed. The message lists them and the command that fixes it."""

    def __init__(self, differences: list[str], mend: str) -> None:
        lines = "\n".join(f"  {line}" for line in differences)
        super().__init__(f"Expected the topics of this topology, but found:\n{lines}\nTo fix it: {mend}")
        self.differences = differences


class ChangelogReplaced(TopologyError):
    """A changelog was deleted and created again, and the rows that the offsets stand for may not be in it."""

    def __init__(self, topic: str, *, expected: str, found: str) -> None:
        super().__init__(
            f"Expected {topic} to be the changelog that the offsets of its processor were committed with (id "
            f"{expected}), but found another one of that name (id {found}): to continue would lose the rows of the "
            "tables. Restore its records from a copy if you have one. Then stop all members and accept it as it is: "
            "kapelle topics adopt"
        )
        self.topic = topic
        self.expected = expected
        self.found = found


class OffsetsLost(TopologyError):
    """A group has no offsets, but its changelog shows that it has folded: a new beginning would do everything twice."""

    def __init__(self, group: str, *, changelog: str, inputs: list[str]) -> None:
        topics = " ".join(f"--topic {name}" for name in inputs)
        super().__init__(
            f"Expected the group {group} to have committed offsets, because its changelog {changelog} has rows, but "
            "found none: they have expired, or were deleted. To fold the inputs from their beginning would do "
            "everything twice. With all members stopped, set the offsets, for example to the time of the stop, or "
            "with --to-earliest if an input was deleted and created again, which deletes its offsets: "
            f"kafka-consumer-groups.sh --bootstrap-server … --group {group} {topics} --reset-offsets --to-datetime … "
            "--execute. To begin with empty tables instead, delete the changelog and run kapelle topics apply"
        )
        self.group = group
        self.changelog = changelog


class ChangelogShortened(TopologyError):
    """The brokers lost the end of a changelog, and our tables may be the last to have what stood there."""

    def __init__(self, changelog: object, *, expected: int, found: int) -> None:
        super().__init__(
            f"Expected {changelog} to reach offset {expected}, which the tables of this process stand for, but its "
            f"leader has reported twice that it ends at {found}: the brokers have lost records. Keep a copy of the "
            "state directory. To continue with the rows of the changelog, start with another directory"
        )
        self.expected = expected
        self.found = found


class InputLost(TopologyError):
    """Input vanished before it was read: accepted commands or events will never be folded."""

    def __init__(self, processor: str, losses: Sequence[Loss]) -> None:
        lines = [f"  {loss}" for loss in losses[:LOSSES_SHOWN_MAX]]
        if len(losses) > LOSSES_SHOWN_MAX:
            lines.append(f"  and {len(losses) - LOSSES_SHOWN_MAX} more partitions")
        losses_text = "\n".join(lines)
        super().__init__(
            f"Expected the inputs of {processor} to hold all records that it has not read, but found:\n{losses_text}\n"
            "Restore the records from a copy if you have one. To continue without them: kapelle processors run … "
            "--on-lost-input skip, which writes a dead letter for each of these lines"
        )
        self.processor = processor
        self.losses = tuple(losses)

    @staticmethod
    def of(processor: str, losses: Sequence[Loss]) -> "InputLost":
        """The error whose name says the worst of it."""
        causes = {loss.cause for loss in losses}
        if Cause.REPLACED in causes:
            return InputReplaced(processor, losses)
        return (InputShortened if Cause.SHORTENED in causes else InputLost)(processor, losses)


class InputReplaced(InputLost):
    """An input topic was deleted and created again: offsets of the old one mean nothing in it."""


class InputShortened(InputLost):
    """An input topic ends before what was read of it: what is written there next would be taken for read."""


class InstanceFencedAgain(TopologyError):
    """Another process keeps taking over our transactional id."""

    def __init__(self, instance: str) -> None:
        super().__init__(
            f"Expected to be the only process of instance {instance!r}, but another one keeps fencing this one: "
            "give each process a state directory of its own"
        )
        self.instance = instance


class BrokerRefused(TopologyError):
    """The broker refused for a reason that no retry mends."""


class CycleAborted(TopologyError):
    """The log could not take this cycle. Nothing of it is visible; it will be done again."""


class Unanswered(CycleAborted):
    """A broker was asked about a partition or a topic, and gave no answer. It says nothing about the data."""

    def __init__(self, about: object, asked: str, reason: str) -> None:
        super().__init__(
            f"No broker has answered {asked}, for {about} ({reason}): a broker or the partition's leader is not "
            "available. The request is retried"
        )
        self.about = about
        self.reason = reason


class ApplyFailed(CycleAborted):
    """`apply` raised half-way, so the overlays cannot be used. The message will be put aside when it comes again."""


class ProducerLost(TopologyError):
    """The producer can no longer say what became of its transaction: fenced, fatal, or a commit without an answer."""


class FoldError(Exception):
    """A record that could not be folded."""


class NotUnderstood(FoldError):
    """A processor says that it cannot make out a record. The message is the processor's reason."""


class DecisionExhausted(FoldError):
    """A decision that did not end: it ran out of time, memory or stack. Its message is given up with this reason."""

    def __init__(self, processor: str, message_type: str, *, ran_out_of: str, limit_ms: int) -> None:
        limit = f" ({limit_ms:,} ms)" if ran_out_of == "time" else ""
        super().__init__(
            f"Expected the decision of {processor} on {message_type} to end within its limits, but it ran out of "
            f"{ran_out_of}{limit}"
        )
        self.processor = processor
        self.message_type = message_type
        self.ran_out_of = ran_out_of
        self.limit_ms = limit_ms


class HandlerFailed(FoldError):
    """A processor's own code raised. The cause is chained."""

    def __init__(self, processor: str, handler: str, cause: BaseException, *, record: str | None = None) -> None:
        super().__init__(f"{handler} of processor {processor!r} raised {type(cause).__name__}: {cause}")
        self.processor = processor
        self.handler = handler
        self.record = record  # as `--set-aside` takes it; None for a timer


class KeyTooLarge(FoldError):
    """A key of more bytes than a key may have."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"Expected a key of at most {KEY_BYTES_MAX} bytes, but found {size_bytes}")


class TimerNotSettled(FoldError):
    """A timer came due, was decided on, and is still due: it would fire for ever."""

    def __init__(self, processor: str, key: str, name: str) -> None:
        super().__init__(
            f"Expected the events decided for timer {name!r} of {key!r} in {processor!r} to cancel it or set it again, "
            "but it is still due"
        )


class UnexpectedType(FoldError):
    """A record decoded to a type that the processor does not take."""

    def __init__(self, topic: str, found: str, expected: list[str]) -> None:
        super().__init__(f"Expected one of {', '.join(expected)} on {topic}, but found {found}")


class UnfitRecord(FoldError):
    """A record whose key is not of the form of its stream, does not fit its value, or has numbers out of bounds."""
