"""The schema topic teaches what is not known. Junk there is passed over, and a topic that is away is asked again."""

import pytest

from kapelle.schemas import Catalog
from kapelle.schemas.learner import EVERY_MS, REPORTED_MAX, UNKNOWN_MAX, Learner, unpublished
from kapelle.schemas.schema_topic import SchemaRecord, to_records

SCHEMA = '{"type": "record", "name": "kapelle.test.A", "fields": [{"name": "b", "type": "string"}]}'
COMMENTED = SCHEMA.replace('"fields"', '"doc": "An example.", "fields"')
OF_SCHEMA = Catalog().learn(SCHEMA)
KEY = f"{OF_SCHEMA:016x}".encode()
GOOD = SchemaRecord(KEY, SCHEMA.encode(), "schemas-0 at 7")
JUNK = [
    SchemaRecord(b"\xff", b"\xff", "schemas-0 at 0"),
    SchemaRecord(b"key", b"{}", "schemas-0 at 1"),
    SchemaRecord(b"", b"[", "schemas-0 at 2"),
    SchemaRecord(b"0" * 16, SCHEMA.encode(), "schemas-0 at 3"),
]


class Topic:
    """A schema topic that can be away."""

    def __init__(self, *records: SchemaRecord) -> None:
        self.records = list(records)
        self.reads = 0
        self.is_away = False

    def read(self) -> list[SchemaRecord]:
        self.reads += 1
        if self.is_away:
            raise ConnectionError
        return self.records


def test_a_schema_is_learnt_though_junk_stands_before_and_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    assert Learner(Catalog(), Topic(*JUNK[:3], GOOD, JUNK[3]).read).learn(OF_SCHEMA)

    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"passed over {junk.where}" for junk in JUNK
    ]


def test_junk_is_reported_once_however_often_the_topic_is_read(caplog: pytest.LogCaptureFixture) -> None:
    learner = Learner(Catalog(), Topic(*JUNK).read)

    for unknown in range(5):
        learner.learn(unknown)

    assert len(caplog.records) == len(JUNK)


def test_reports_about_junk_have_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    Learner(
        Catalog(), lambda: [SchemaRecord(b"", b"[", f"at {offset}") for offset in range(REPORTED_MAX + 5)]
    ).learn_all()

    assert len(caplog.records) == REPORTED_MAX


def test_a_deleted_schema_is_no_junk(caplog: pytest.LogCaptureFixture) -> None:
    Learner(Catalog(), lambda: [SchemaRecord(KEY, None, "schemas-0 at 0")]).learn_all()

    assert caplog.records == []


def test_an_unknown_schema_is_looked_for_again_only_after_a_while() -> None:
    now_ms, topic = [0], Topic()
    learner = Learner(Catalog(), topic.read, lambda: now_ms[0])

    assert [learner.learn(OF_SCHEMA) for _ in range(3)] == [False] * 3
    assert topic.reads == 1
    topic.records.append(GOOD)
    now_ms[0] += EVERY_MS
    assert learner.learn(OF_SCHEMA)
    assert topic.reads == 2


def test_a_topic_that_was_away_is_asked_again_at_once() -> None:
    topic = Topic(GOOD)
    learner = Learner(Catalog(), topic.read, lambda: 0)
    topic.is_away = True
    with pytest.raises(ConnectionError):
        learner.learn(OF_SCHEMA)
    topic.is_away = False

    assert learner.learn(OF_SCHEMA)


def test_a_schema_is_learnt_however_many_unknown_ones_came_before_it() -> None:
    topic = Topic()
    learner = Learner(Catalog(), topic.read, lambda: 0)
    for unknown in range(UNKNOWN_MAX + 1):
        learner.learn(unknown)
    topic.records.append(GOOD)

    assert learner.learn(OF_SCHEMA)


@pytest.mark.parametrize(
    ("records", "is_missing"),
    [
        ([], True),
        ([GOOD], False),
        ([SchemaRecord(KEY, COMMENTED.encode(), "")], False),
        ([GOOD, SchemaRecord(KEY, b"\xff", "")], True),
        ([GOOD, SchemaRecord(KEY, None, "")], True),
        ([SchemaRecord(KEY, b"\xff", ""), GOOD], False),
        ([SchemaRecord(b"0" * 16, SCHEMA.encode(), "")], True),
        ([GOOD, *JUNK], False),
    ],
    ids=["empty", "there", "with a comment", "hidden by junk", "deleted", "mended", "under another key", "among junk"],
)
def test_a_schema_is_there_if_the_latest_record_of_its_key_holds_it(
    records: list[SchemaRecord], is_missing: bool
) -> None:
    catalog = Catalog()
    catalog.learn(SCHEMA)

    assert unpublished(catalog, records) == (to_records(catalog) if is_missing else [])
