"""A consumer group member that reads at least once: the caller commits when the effects of a batch are safe."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kapelle.broker import is_end, is_final, is_missing, is_refused, leave
from kapelle.topology.errors import BrokerRefused, CycleAborted, ProducerLost
from kapelle.topology.exposition import Statistics
from kapelle.topology.kafka.answers import committed_positions
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.inputs import losses_of
from kapelle.topology.kafka.offsets import Offsets, committed
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place

BATCH: Final = 500
WAIT_S: Final = 0.25
METADATA_MS: Final = 10_000  # so soon a topic that is made later is found
LOOK_S: Final = 3.0  # how long to look for what was lost, when partitions come
LEAVE_S: Final = 2.0  # who has not left the group by then is thrown out when its session ends

Lost = Callable[[Sequence[Place]], None]


class GroupReader:
    """Takes batches of records. A topic that does not exist yet is reported once, and waited for."""

    def __init__(self, settings: KafkaSettings, group: str, log: logging.Logger, *, is_from_end: bool = False) -> None:
        self._group = group
        self._log = log
        self._settings = settings
        self._timeout_s = settings.request_timeout_s
        self._topics: Collection[str] = ()
        self._missing: set[str] = set()
        self._came: list[Place] = []  # partitions that nobody has looked at for what they have lost
        self._left: set[Place] = set()  # the partitions that went to others within the last `take`
        self.statistics: dict[str, Statistics] = {}  # what librdkafka told last, by group
        config: dict[str, object] = {"topic.metadata.refresh.interval.ms": METADATA_MS}
        config |= settings.consumer(group) | {"stats_cb": self._told}
        if is_from_end:  # where the group has no offsets
            config["auto.offset.reset"] = "latest"
        self._consumer = made(Consumer, config)

    def use(self, topics: Collection[str], lost: Lost = lambda _: None) -> None:
        """Read these topics from now on. `lost` is told, within `take`, of partitions that go to others."""

        def came(_: Consumer, partitions: list[TopicPartition]) -> None:
            self._came += [Place(partition.topic, partition.partition) for partition in partitions]

        def left(_: Consumer, partitions: list[TopicPartition]) -> None:
            places = [Place(partition.topic, partition.partition) for partition in partitions]
            self._left.update(places)
            lost(places)

        self._topics = frozenset(topics)
        with translated(f"subscribe {self._group} to its topics"):
            if topics:
                self._consumer.subscribe(sorted(topics), on_assign=came, on_revoke=left, on_lost=left)
            else:
                self._consumer.unsubscribe()

    def take(self, batch: int = BATCH, wait_s: float = WAIT_S) -> list[Message]:
        """What is there, up to a limit. Errors that nobody but the operator can mend are raised."""
        self._left.clear()
        with translated(f"read the topics of {self._group}"):
            messages = self._consumer.consume(batch, wait_s)
        if self._came:  # not while the group deals out: questions about its offsets are not answered then
            came, self._came = self._came, []
            self._tell_losses(came)
        records = [message for message in messages if self._is_record(message)]
        return self._still_ours(records) if self._left else records

    def commit(self, records: Sequence[Message]) -> None:
        """These need not be read again."""
        self.commit_ends(
            {Place(record.topic() or "", record.partition() or 0): (record.offset() or 0) + 1 for record in records}
        )

    def commit_ends(self, ends: Mapping[Place, int], notes: Mapping[Place, str] | None = None) -> None:
        """What stands before these offsets need not be read again. Notes are kept beside them, for whoever is next."""
        if not ends:
            return
        kept = notes or {}
        try:
            self._consumer.commit(
                offsets=[TopicPartition(*place, end, kept.get(place, "")) for place, end in ends.items()],
                asynchronous=False,
            )
        except KafkaException as error:
            if is_refused(error.args[0]):
                raise BrokerRefused(f"Expected to commit for {self._group}, but {error.args[0].str()}") from error
            # Whoever has the partitions now reads the batch again, and what comes of it is the same.
            self._log.warning("offsets were not committed", extra={"fields": {"reason": error.args[0].str()}})

    def note(self, place: Place) -> str:
        """What was noted beside the offset of a partition; nothing, if nobody has committed one."""
        with translated(f"ask for the offsets of {self._group}"):
            (position,) = committed_positions(self._consumer, [place], self._timeout_s)
        return position.metadata or ""

    def seek(self, place: Place, offset: int) -> None:
        """Read a partition that is ours from another offset on."""
        with translated(f"read from further back for {self._group}"):
            self._consumer.seek(TopicPartition(*place, offset))

    def hold(self) -> None:
        """Take nothing for now. Whoever holds still has to `take`, or the group believes that we are gone."""
        self._consumer.pause(self._consumer.assignment())

    def go_on(self) -> None:
        """Take records again."""
        self._consumer.resume(self._consumer.assignment())

    def close(self) -> None:
        """Leave the group, within a limit."""
        leave(self._consumer.close, self._group).join(LEAVE_S)

    def _tell_losses(self, places: Sequence[Place]) -> None:
        """Say which records were deleted before this group read them. It goes on behind them."""
        offsets = Offsets(self._settings)
        try:
            with translated(f"look for what {self._group} has lost"):
                positions = committed(self._settings, self._group, places, min(LOOK_S, self._timeout_s))
                losses = losses_of(positions, dict.fromkeys((place.topic for place in places), ""), offsets)
        except (CycleAborted, BrokerRefused, ProducerLost) as error:
            self._log.warning("cannot check whether records were lost", extra={"fields": {"reason": str(error)}})
            return
        finally:
            offsets.close()
        for loss in losses:
            fields = {"what": str(loss), "records_max": loss.count, "group": self._group}
            self._log.error("records were lost before they were read", extra={"fields": fields})

    def _still_ours(self, records: list[Message]) -> list[Message]:
        """Without what was taken of partitions that went to others meanwhile. Those that came back are read again."""
        dropped: dict[Place, int] = {}
        for record in records:
            place, offset = Place(record.topic() or "", record.partition() or 0), record.offset() or 0
            if place in self._left:
                dropped[place] = min(offset, dropped.get(place, offset))
        with translated(f"read again for {self._group}"):
            for owned in self._consumer.assignment():
                if (offset := dropped.get(Place(owned.topic, owned.partition), -1)) >= 0:
                    self._consumer.seek(TopicPartition(owned.topic, owned.partition, offset))
        return [record for record in records if Place(record.topic() or "", record.partition() or 0) not in self._left]

    def _told(self, statistics: str) -> None:
        self.statistics = {self._group: msgspec.json.decode(statistics)}

    def _is_record(self, message: Message) -> bool:
        error, topic = message.error(), message.topic() or ""
        if error is None:
            return topic in self._topics  # what came before its topic was taken out is left uncommitted
        if is_missing(error):
            if topic not in self._missing:
                self._log.warning("a topic does not exist yet", extra={"fields": {"topic": topic}})
            self._missing.add(topic)
        elif is_final(error):
            raise BrokerRefused(f"Expected to read {topic or f'the topics of {self._group}'}, but {error.str()}")
        elif not is_end(error):
            self._log.warning("librdkafka reports a problem", extra={"fields": {"reason": error.str()}})
        return False
