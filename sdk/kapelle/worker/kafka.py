"""Tasks directly from Kafka: one consumer group for each step type, reports by an idempotent producer.

    <prefix>.tasks ─────────────────▶ group <prefix>.tasks.<type>     tasks of other types are skipped
    <prefix>.tasks.cancellations ───▶ every worker reads all of it
    <prefix>.runs.commands ◀──────── ReportTask, keyed by workflow and instance

1. A worker takes a task by reporting STARTED, and begins without waiting: a later report cannot overtake that one. The
   offset is committed when the report is acknowledged. After an earlier crash another member of the group gets the
   task; after a later crash the lease runs out and the engine retries the step.
2. No more records are read than there is room for; a full worker pauses its partitions and keeps its membership.
3. The engine's decision about a report is not visible here (`Answer.accepted` is None): a task that two workers have is
   executed by both, and the engine accepts the report of one.
"""

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import Final, NamedTuple, cast

from confluent_kafka import Message

from kapelle.schemas import Catalog, Codec, SchemaError, UnknownFingerprint
from kapelle.schemas.contracts import CancelTask, Report, ReportTask, Task
from kapelle.schemas.headers import HeaderForm, Headers, rfc3339, trace_of
from kapelle.schemas.learner import Learner
from kapelle.worker.errors import WorkerError
from kapelle.worker.kafka_clients import Delivery, KafkaClients, Setting
from kapelle.worker.kafka_readers import GroupTaker, Records, ShareTaker, Taker, TopicTail
from kapelle.worker.transport import Answer, TaskReport

SLICE_S: Final = 0.005  # how long one of several consumers is waited for
CANCELLED_MAX: Final = 10_000  # tokens remembered, and records of the past that are read at the start
TRACES_MAX: Final = 10_000
INSTANCE_MAX: Final = 2**63 - 1
DEADLINE_MS_MAX: Final = 253_402_300_799_999  # the year 9999
LATE_MS: Final = 60_000  # a task so long past its deadline is not begun: the engine has ended it

_log = logging.getLogger("kapelle.worker.kafka")


class Dispatch(StrEnum):
    """How tasks of a type are distributed to workers."""

    CONSUMER = "consumer"  # consumer groups: partitions are shared out
    SHARE = "share"  # share groups (KIP-932): records are


class StartedBatch(NamedTuple):
    """Records whose tasks were begun, and our reports about them on their way."""

    taker: Taker
    records: Records
    beyond: Records
    delivery: Delivery


class KafkaTransport:
    """The transport over Kafka. `config` has settings of librdkafka, such as security."""

    def __init__(
        self,
        bootstrap_servers: str,
        prefix: str = "kapelle",
        *,
        dispatch: Dispatch | str = Dispatch.CONSUMER,
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        self._clients = KafkaClients(bootstrap_servers, config or {})
        self._prefix = prefix
        self._dispatch = Dispatch(dispatch)
        self._codec = Codec(Catalog([Task, CancelTask, ReportTask]))
        self._learner = Learner(self._codec.catalog, lambda: self._clients.schemas(self._schemas))
        self._worker = ""
        self._takers: dict[str, Taker] = {}
        self._cancellations: TopicTail | None = None
        self._cancelled: OrderedDict[str, str] = OrderedDict()
        self._traces: OrderedDict[str, str] = OrderedDict()
        self._begun: deque[StartedBatch] = deque()
        self._heard: list[tuple[str, str]] = []
        self._numbers = count()

    def open(self, worker: str, types: Sequence[str]) -> None:
        self._worker = worker
        self._form = HeaderForm(f"/{self._prefix}/workers/{worker}", ReportTask.__name__, content_type=None)
        self._clients.check_topics([self._tasks, self._commands, self._cancellation_topic])
        self._learner.learn_all()
        self._clients.publish_schemas(self._schemas, self._codec.catalog)
        self._cancellations = TopicTail(
            self._clients.reader(f"{self._prefix}.workers.{worker}"), self._cancellation_topic, CANCELLED_MAX
        )
        self._remember(self._cancellations.past())
        make = ShareTaker if self._dispatch is Dispatch.SHARE else GroupTaker
        for kind in types:
            self._takers[kind] = make(self._clients, self._tasks, f"{self._tasks}.{kind}")

    # Taking -----------------------------------------------------------------------------------------------------------

    def take(self, room: int, wait_s: float) -> list[Task]:
        self._settle()
        if room <= 0:
            for taker in self._takers.values():
                taker.rest()
            return []
        until_s = time.monotonic() + wait_s
        slice_s = wait_s if len(self._takers) == 1 else min(SLICE_S, wait_s)
        taken: list[Task] = []
        while True:
            for kind, taker in self._takers.items():
                if room > len(taken):
                    taken += self._take_of(kind, taker, room - len(taken), 0.0 if taken else slice_s)
            if taken or time.monotonic() >= until_s:
                return taken

    def _take_of(self, kind: str, taker: Taker, room: int, wait_s: float) -> list[Task]:
        records = taker.poll(room, wait_s)
        if not records:
            return []
        self._hear()  # a task may have been cancelled while it waited in the topic
        candidates: list[tuple[Message, Task]] = []
        for record in records:
            task = self._task(record)
            if task is not None and self._is_wanted(task, kind):
                candidates.append((record, task))
        started = [TaskReport(task, Report.STARTED) for _, task in candidates[:room]]
        beyond = [record for record, _ in candidates[room:]]
        self._begun.append(StartedBatch(taker, records, beyond, self._begin(started)))
        if taker.settles_first:
            self._settle(wait=True)
        return [task for _, task in candidates[:room]]

    def _settle(self, *, wait: bool = False) -> None:
        """Commit what was begun, in its order, as far as the broker has our reports. Nobody waits for that to begin."""
        self._clients.serve()
        while self._begun and (wait or self._begun[0].delivery.is_over):
            begun = self._begun.popleft()
            try:
                self._clients.settle(begun.delivery)
            except BaseException:
                self._put_back([begun, *self._begun])
                raise
            begun.taker.settle(begun.records, begun.beyond)

    def _put_back(self, all_begun: Sequence[StartedBatch]) -> None:
        """They come again, to us or to others. What we have in hand already is known by its token."""
        self._begun.clear()
        for begun in reversed(all_begun):
            begun.taker.put_back(begun.records)

    def _task(self, record: Message) -> Task | None:
        """The task of a record. What cannot be read is nobody's task: it is passed over."""
        value = self._decoded(record)
        if not isinstance(value, Task):
            return None
        if not _can_be_reported(value):
            _pass_over(record, "Expected a task of an instance, but its ids or its deadline are out of bounds")
            return None
        trace = trace_of(cast("Headers | None", record.headers()))  # read as bytes, whatever may be written
        if trace is not None:
            _put(self._traces, value.token, trace, TRACES_MAX)
        return value

    def _is_wanted(self, task: Task, kind: str) -> bool:
        if task.type != kind or task.token in self._cancelled:
            return False
        return task.deadline_at_ms + LATE_MS > time.time() * 1000

    # Speaking ---------------------------------------------------------------------------------------------------------

    def report(self, reports: Sequence[TaskReport]) -> list[Answer]:
        self._clients.settle(self._begin(reports))
        for task_report in reports:
            if task_report.report is not Report.HEARTBEAT:
                self._traces.pop(task_report.task.token, None)
        return [Answer(task_report.task.token) for task_report in reports]

    def _begin(self, reports: Sequence[TaskReport]) -> Delivery:
        now = rfc3339(int(time.time() * 1000))
        return self._clients.begin(self._commands, [self._record(task_report, now) for task_report in reports])

    def _record(self, task_report: TaskReport, now: bytes) -> tuple[str, bytes, list[tuple[str, bytes]]]:
        task = task_report.task
        content = (task_report.report, task_report.message, task_report.outputs, task_report.signals, task_report.log)
        value = ReportTask(task.token, task.step_id, self._worker, *content)
        name = f"{self._worker}/{next(self._numbers)}"
        headers = self._form.make(name, now, self._traces.get(task.token))
        return f"{task.workflow_id}/{task.instance_id}", self._codec.encode(value), headers

    # Cancellations ----------------------------------------------------------------------------------------------------

    def cancellations(self) -> list[tuple[str, str]]:
        self._hear()
        heard, self._heard = self._heard, []
        return heard

    def _hear(self) -> None:
        if self._cancellations is not None:
            self._heard += self._remember(self._cancellations.new())

    def _remember(self, records: Records) -> list[tuple[str, str]]:
        cancellations = [value for value in map(self._decoded, records) if isinstance(value, CancelTask)]
        for value in cancellations:
            _put(self._cancelled, value.token, value.reason, CANCELLED_MAX)
        return [(value.token, value.reason) for value in cancellations]

    # The rest ---------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        try:
            self._settle(wait=True)
        except WorkerError as error:
            _log.warning("could not commit started tasks; other workers may receive them again: %s", error)
        for taker in self._takers.values():
            taker.close()
        self._takers.clear()

    def close(self) -> None:
        self.drain()
        if self._cancellations is not None:
            self._cancellations.close()
        self._clients.close()

    def _decoded(self, record: Message) -> object:
        """The value of a record; None if it cannot be read, after looking for its schema."""
        data = record.value() or b""
        try:
            return self._codec.decode(data)
        except UnknownFingerprint as error:
            if self._learner.learn(error.fingerprint):
                return self._decoded(record)
            _pass_over(record, str(error))
            return None
        except SchemaError as error:
            _pass_over(record, str(error))
            return None

    @property
    def _tasks(self) -> str:
        return f"{self._prefix}.tasks"

    @property
    def _cancellation_topic(self) -> str:
        return f"{self._prefix}.tasks.cancellations"

    @property
    def _commands(self) -> str:
        return f"{self._prefix}.runs.commands"

    @property
    def _schemas(self) -> str:
        return f"{self._prefix}.schemas"


def _can_be_reported(task: Task) -> bool:
    """Whether the engine would take a report about it: its key must be that of an instance."""
    is_instance = 0 < task.instance_id <= INSTANCE_MAX and task.workflow_id != "" and "/" not in task.workflow_id
    return is_instance and task.step_id != "" and task.lease_ms > 0 and abs(task.deadline_at_ms) <= DEADLINE_MS_MAX


def _pass_over(record: Message, reason: str) -> None:
    _log.warning("skipped %s-%s@%s: %s", record.topic(), record.partition(), record.offset(), reason)


def _put(into: OrderedDict[str, str], key: str, value: str, count_max: int) -> None:
    into[key] = value
    while len(into) > count_max:
        into.popitem(last=False)
