"""The groups of the processors: their members, their offsets, and open transactions that block them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, ConsumerGroupState, IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # exported, but not by name

from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.cli.checks.topics import some
from kapelle.topology.errors import ChangelogReplaced, OffsetsLost
from kapelle.topology.kafka.answers import EARLIEST, LATEST, list_offsets
from kapelle.topology.kafka.config import Setting
from kapelle.topology.kafka.inputs import losses_of
from kapelle.topology.kafka.notes import refuse_another
from kapelle.topology.kafka.offsets import Offsets, committed
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.kafka.translate import made
from kapelle.topology.log import Loss, Place

STUCK: Final = 2  # a transaction that is open for so many of its time-outs is nobody's

Places = Mapping[tuple[str, int], int]


def members(case: Case) -> Iterator[Finding]:
    """Whether somebody runs the processors, and by which protocol."""
    if not case.has_groups:
        advice = "Fix __consumer_offsets first, see above: groups need it for their offsets"
        yield Finding("groups", Verdict.WRONG, "no group can work: the brokers cannot store offsets", advice)
        return
    groups = {case.topology.group(name): name for name in case.topology.processors}
    if not groups:
        return
    described = {groups[group]: future.result() for group, future in case.groups(list(groups)).items()}
    idle = [name for name, group in described.items() if not group.members]
    other = [
        f"{name} ({group.type.name.lower()})"
        for name, group in described.items()
        if group.members and group.type.name.lower() not in (case.settings.protocol.value, "unknown")
    ]
    moving = [
        name
        for name, group in described.items()
        if group.members and group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)
    ]
    if idle:
        advice = case.target.command("processors", "run", but=["--state-dir", "DIR"])
        yield Finding("groups", Verdict.WARNING, f"no process runs {some(idle)}", advice)
    if other:
        found_text = f"not using the protocol {case.settings.protocol.value}: {some(other)}"
        yield Finding("groups", Verdict.WARNING, found_text, "Start all processes of a group with the same --protocol")
    if moving:
        advice = "Check again in a moment. If it persists, processes join and leave all the time: see their logs"
        yield Finding("groups", Verdict.WARNING, f"{some(moving)} rebalancing", advice)
    if not (idle or other or moving):
        count = sum(len(group.members) for group in described.values())
        yield Finding("groups", Verdict.OK, f"{len(described)} groups, {count} members")


def offsets(case: Case) -> Iterator[Finding]:
    """Whether each group has the offsets that its tables stand for, and how far behind it is."""
    if not case.has_groups:
        return
    lag, lost = 0, False
    for name in case.topology.processors:
        if not set(_topics(case, name)) <= set(case.there):
            continue  # what is missing is told by the check of topics
        positions = _committed(case, name)
        try:
            _check_changelog(case, name, positions)
        except (ChangelogReplaced, OffsetsLost) as error:
            lost = True
            what, _, advice = str(error).partition(". ")
            yield Finding(case.topology.group(name), Verdict.WRONG, what, advice)
            continue
        for loss in _losses(case, name, positions):
            lost = True
            yield Finding(case.topology.group(name), Verdict.WRONG, str(loss), _skipping(case))
        ends = _ends(case, [(tp.topic, tp.partition) for tp in positions], IsolationLevel.READ_COMMITTED)
        lag += sum(max(ends[tp.topic, tp.partition] - max(tp.offset, 0), 0) for tp in positions)
    if not lost:
        yield Finding("offsets", Verdict.OK, f"records not processed yet, including transaction markers: {lag}")


def _topics(case: Case, processor: str) -> list[str]:
    inputs = [case.topology.topic(s) for s in case.topology.processors[processor].inputs]
    return [*inputs, case.topology.changelog(processor)]


def _committed(case: Case, processor: str) -> list[TopicPartition]:
    inputs, group = _topics(case, processor)[:-1], case.topology.group(processor)
    places = [Place(topic, n) for topic in inputs for n in case.metadata.topics[topic].partitions]
    # Who may not ask is told so at once here; what reads the offsets would wait until the time is over.
    case.groups([group])[group].result()
    return committed(case.settings, group, places, case.timeout_s)


def _check_changelog(case: Case, processor: str, positions: Sequence[TopicPartition]) -> None:
    changelog = case.topology.changelog(processor)
    refuse_another(changelog, Topics(case.topology, case.settings).identities([changelog])[changelog], positions)
    if any(tp.offset >= 0 for tp in positions):
        return
    places = [(changelog, n) for n in case.metadata.topics[changelog].partitions]
    begins = _asked(case, places, EARLIEST)
    ends = _ends(case, places, IsolationLevel.READ_COMMITTED)
    if any(ends[place] > begins[place] for place in places):
        raise OffsetsLost(case.topology.group(processor), changelog=changelog, inputs=_topics(case, processor)[:-1])


def _losses(case: Case, processor: str, positions: Sequence[TopicPartition]) -> list[Loss]:
    """What of the inputs was deleted before it was read."""
    offsets = Offsets(case.settings)
    try:
        ids = Topics(case.topology, case.settings).identities(_topics(case, processor)[:-1])
        return losses_of(positions, ids, offsets)
    finally:
        offsets.close()


def _skipping(case: Case) -> str:
    command = case.target.command("processors", "run", but=["--state-dir", "DIR", "--on-lost-input", "skip"])
    return f"Restore the records from a copy if you have one. To continue without them: {command}"


def transactions(case: Case) -> Iterator[Finding]:
    """Whether a transaction that nobody ends keeps readers from what stands behind it."""
    places = [(name, number) for name in case.there for number in case.metadata.topics[name].partitions]
    stable = _ends(case, places, IsolationLevel.READ_COMMITTED)
    ends = _ends(case, places, IsolationLevel.READ_UNCOMMITTED)
    held = {place: at for place, at in stable.items() if at < ends[place]}
    limit_ms = STUCK * case.settings.transaction_timeout_ms
    now_ms = case.clock_ms()
    begun = _begun(case, held) if held else {}
    old = [place for place, at_ms in begun.items() if now_ms - at_ms > limit_ms]
    for topic, number in old:
        seconds = (now_ms - begun[topic, number]) // 1000
        found = f"a transaction at offset {held[topic, number]} is open for {seconds} s: consumers cannot read past it"
        advice = (
            "Stop the writing process, or run kafka-transactions.sh --bootstrap-server … abort "
            f"--topic {topic} --partition {number} --start-offset {held[topic, number]}"
        )
        yield Finding(f"{topic}-{number}", Verdict.WRONG, found, advice)
    if not old:
        yield Finding("open transactions", Verdict.OK, f"none for longer than {limit_ms // 1000} s")


def _begun(case: Case, held: Places) -> Places:
    """When the record at each place was written: the first of the transaction that is open there."""
    config: dict[str, Setting] = {
        **case.settings.reader(f"{case.topology.prefix}.doctor"),
        "isolation.level": "read_uncommitted",
    }
    consumer = made(Consumer, config)
    begun: dict[tuple[str, int], int] = {}
    try:
        for (topic, number), offset in held.items():
            consumer.assign([TopicPartition(topic, number, offset)])
            message = consumer.poll(case.timeout_s)
            if message is not None and message.error() is None:
                begun[topic, number] = message.timestamp()[1]
    finally:
        consumer.close()
    return begun


def _ends(case: Case, places: Sequence[tuple[str, int]], level: IsolationLevel) -> Places:
    return _asked(case, places, LATEST, level)


def _asked(
    case: Case,
    places: Sequence[tuple[str, int]],
    spec: OffsetSpec,
    level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Places:
    offsets = list_offsets(case.admin, places, spec, isolation=level, timeout_s=case.timeout_s)
    return {(place.topic, place.partition): offset for place, offset in offsets.items()}
