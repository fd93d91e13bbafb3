"""Input that vanishes below its reader: deleted unread, or its topic deleted and created again."""

from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.schemas.contracts import Stage
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import CycleAborted, InputLost, InputReplaced
from kapelle.topology.kafka import inputs
from kapelle.topology.kafka.inputs import vanished
from kapelle.topology.kafka.offsets import Offsets, asked_until, committed
from kapelle.topology.letters import NotRedrivable, redrive_of
from kapelle.topology.log import Cause, Loss, Place
from kapelle.topology.settings import Limits, MemberSettings, OnLostInput
from tests.integration.runtime.members import ENOUGH_S, Deployment, own, until
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Counting, count, counted, counting
from tests.proof.workload import ticks
from tests.support.broker import Broker

LIMITS = Limits(idle_wait_ms=20, doubt_ms=300)
STOPPING = MemberSettings(limits=LIMITS)
SKIPPING = MemberSettings(limits=LIMITS, on_lost_input=OnLostInput.SKIP)


ticks_in, others_in = Stream("ticks", (Tick,)), Stream("others", (Tick,))


def processor() -> Processor[Counting]:
    """As `counting`, with a second input: when a topic is deleted, the offsets of the other one remain."""
    made = Processor("counting", tables=Counting, inputs=[ticks_in, others_in], events=counting.events)
    made.decides(Tick)(count)
    made.applies(Counted)(counted)
    return made


class Place1(Deployment):
    """One processor with one partition, and a count of what was published."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        super().__init__(broker, directory, own([processor()], partitions=1))
        self.input = Place(self.topology.topic(ticks_in), 0)
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        self.published = 0
        self.lost = 0

    def publish_more(self, count: int) -> None:
        self.publish(row for n, row in enumerate(ticks(self.published + count, 3)) if n >= self.published)
        self.published += count

    def folded(self) -> list[str]:
        return [event.id for events in self.seen()["counting.events"].values() for _, event in events]

    def delete_below(self, offset: int) -> None:
        (done,) = self.admin.delete_records([TopicPartition(*self.input, offset)]).values()
        done.result(ENOUGH_S)

    def replace_topic(self) -> None:
        """Delete the input and create it again, as a script does that means well."""
        name = self.input.topic
        self.admin.delete_topics([name])[name].result(ENOUGH_S)
        until(lambda: name not in self.admin.list_topics(timeout=ENOUGH_S).topics, "the topic to be gone")
        config = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
        config["max.message.bytes"] = str(self.settings.wire_bytes_max)
        self.admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(ENOUGH_S)

    def at(self) -> int:
        (position,) = committed(self.settings, self.topology.group("counting"), [self.input], ENOUGH_S)
        return position.offset

    def goes_on(self, settings: MemberSettings = STOPPING) -> None:
        """Run a member until it has folded all that it can."""
        with self.member(settings=settings) as one:
            until(lambda: one.ended() or self.is_done(), "the records to be folded")

    def is_done(self) -> bool:
        return len(set(self.folded())) >= self.published - self.lost

    def vanished(self) -> list[Loss]:
        return vanished(self.topology, self.settings, "counting", ENOUGH_S)

    def last_letter(self) -> tuple[Stage, str, int, int | None]:
        letter = [one for one in self.letters() if one.stage is Stage.READ][-1]
        assert (letter.processor, letter.topic, letter.partition) == ("counting", *self.input)
        return letter.stage, letter.error, letter.offset, letter.end_offset


@pytest.fixture(scope="module")
def place(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Place1:
    """A deployment that all tests here share: each finds everything read, and leaves it so."""
    found = Place1(broker, tmp_path_factory.mktemp("inputs"))
    found.publish_more(3)
    found.goes_on()
    return found


def test_commands_that_were_deleted_unread_stop_the_member_until_somebody_says_to_go_on(place: Place1) -> None:
    at, folded = place.at(), place.folded()
    place.publish_more(10)
    place.delete_below(at + 7)
    told = rf"offsets {at} to {at + 6} \(7 in all\) were deleted before they were read\n.* --on-lost-input skip"

    with pytest.raises(InputLost, match=told):
        place.goes_on()
    assert (place.at(), place.folded()) == (at, folded)
    assert [(loss.place, loss.first, loss.end) for loss in place.vanished()] == [(place.input, at, at + 7)]

    place.lost += 7
    place.goes_on(SKIPPING)
    assert place.last_letter() == (Stage.READ, Cause.DELETED.name, at, at + 7)
    assert (len(place.folded()), place.at(), place.vanished()) == (len(folded) + 3, at + 10, [])
    with pytest.raises(NotRedrivable, match="reports lost records"):
        redrive_of(Codec(place.topology.catalog()), 0, place.messages(place.topology.dead_letters)[-1].value() or b"")


def test_records_that_are_deleted_under_a_running_member_are_noticed(place: Place1) -> None:
    at = place.at()
    deleted: list[CrashPoint] = []

    def delete_them(point: CrashPoint) -> None:
        """They were taken, but the cycle is given up, and when it begins again they are gone."""
        if point is CrashPoint.AFTER_CONSUME and not deleted:
            deleted.append(point)
            place.delete_below(at + 4)
            raise CycleAborted("as after any error")

    place.publish_more(5)
    with place.member(settings=SKIPPING, crash=delete_them) as one:
        place.lost += 4
        until(place.is_done, "the rest to be folded")
        until(lambda: one.counters.lost_offsets == 4, "the loss to be counted")
        assert one.counters.lost_inputs == 1
        # A position that is not there, with nothing lost: the partition is read on from where it was.
        one.kafka.log._readers["counting"].consumer.seek(TopicPartition(*place.input, 1))
        until(lambda: one.counters.aborts > 1, "the position to be refused")
        place.publish_more(2)
        until(place.is_done, "reading to go on")
        assert one.counters.lost_inputs == 1

    assert place.last_letter() == (Stage.READ, Cause.DELETED.name, at, at + 4)


@pytest.mark.parametrize("when", ["while nobody ran", "under a running member"])
def test_a_topic_that_was_replaced_is_refused_and_then_read_from_its_beginning(
    place: Place1, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "LOOK_EVERY_S", 0.2)

    def replaced() -> None:
        with place.member(settings=STOPPING) as one:
            if when == "under a running member":
                until(lambda: one.member.ready, "the member to be ready")
                place.replace_topic()
                place.publish_more(20)
            until(one.ended, "the member to stop")

    if when == "while nobody ran":
        at = place.at()
        place.replace_topic()
        place.publish_more(at + 5)  # the committed offset would be there, and all before it taken for read

    with pytest.raises(InputReplaced, match="the topic was deleted and created again"):
        replaced()
    assert [loss.cause for loss in place.vanished()] == [Cause.REPLACED]

    # What was read of the new topic before it was noticed comes again: commands have ids for that.
    place.goes_on(SKIPPING)
    assert place.is_done()
    stage, error, _, end = place.last_letter()
    assert (stage, error, end, place.vanished()) == (Stage.READ, Cause.REPLACED.name, None, [])


def test_marks_of_transactions_are_not_taken_for_lost_records(place: Place1) -> None:
    """The mark behind the last record is read too, so that its deletion is no loss."""
    producer = Producer(
        {"bootstrap.servers": place.broker.bootstrap_servers, "transactional.id": f"marks-{place.input}"}
    )
    producer.init_transactions(ENOUGH_S)
    producer.begin_transaction()
    producer.produce(place.input.topic, b"?", b"k", 0)
    producer.commit_transaction(ENOUGH_S)
    offsets = Offsets(place.settings)
    (end,) = asked_until(ENOUGH_S, lambda: offsets.ends([place.input])).values()
    offsets.close()

    with place.member(settings=MemberSettings(limits=Limits(idle_wait_ms=20, advance_ms=100))):
        until(lambda: place.at() == end, "the offset to be behind the mark")
    place.delete_below(end)

    assert place.vanished() == []
    place.publish_more(3)
    place.goes_on()
