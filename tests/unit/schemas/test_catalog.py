"""A catalog knows contracts by name, and schemas by fingerprint and id; it can be carried by a topic."""

import pytest

from kapelle.schemas import BadCatalog, BadSchema, Catalog, Codec, UnknownContract, UnknownSchemaId, contracts
from kapelle.schemas.contracts import DeadLetter
from kapelle.schemas.schema_topic import from_records, learn_record, to_records
from tests.unit.schemas.fresh import SHARED, contract_of, field, module_of, record

OLD = contract_of(record("Word", field("text", "string")))
NEW = contract_of(record("Word", field("text", "string"), field("n", "int", default=1)))


def test_a_catalog_of_a_module_holds_its_contracts_alone() -> None:
    module = module_of(record("Outer", field("x", record("Nested")), field("s", "fresh.Shared")), SHARED)
    vars(module)["Stranger"] = NEW

    assert {contract.__name__ for contract in Catalog.of(module)} == {"Outer", "Shared"}


def test_two_types_of_one_name_are_refused() -> None:
    with pytest.raises(BadCatalog, match=r"one type for fresh\.Word"):
        Catalog.of(OLD, NEW)


def test_the_same_type_twice_is_one() -> None:
    assert list(Catalog.of(OLD, OLD)) == [OLD]


def test_joined_catalogs_know_what_either_knew() -> None:
    strange = Catalog()
    strange.learn(NEW.SCHEMA, schema_id=4)

    both = Catalog.of(DeadLetter) | Catalog.of(OLD) | strange

    assert set(both) == {DeadLetter, OLD}
    earlier = set(Catalog.of(DeadLetter).schemas) - {DeadLetter.FINGERPRINT}
    assert len(earlier) == len(DeadLetter.EARLIER)
    assert set(both.schemas) == {DeadLetter.FINGERPRINT, OLD.FINGERPRINT, NEW.FINGERPRINT, *earlier}
    assert both.fingerprint_of(4) == NEW.FINGERPRINT


def test_joining_leaves_both_sides_as_they_were() -> None:
    first, second = Catalog.of(OLD), Catalog.of(DeadLetter)

    first | second

    assert list(first) == [OLD]
    assert OLD not in list(second)


def test_learning_a_schema_twice_is_learning_it_once() -> None:
    catalog = Catalog()

    assert catalog.learn(OLD.SCHEMA) == catalog.learn(f" {OLD.SCHEMA} ") == OLD.FINGERPRINT
    assert list(catalog.schemas) == [OLD.FINGERPRINT]


def test_only_records_can_be_learnt() -> None:
    with pytest.raises(BadSchema, match="expected a record"):
        Catalog().learn('"string"')


def test_an_id_that_was_never_learnt_is_unknown() -> None:
    with pytest.raises(UnknownSchemaId):
        Catalog.of(OLD).fingerprint_of(1)


def test_a_schema_without_a_type_has_no_reader() -> None:
    catalog = Catalog()
    catalog.learn(OLD.SCHEMA)

    with pytest.raises(UnknownContract):
        catalog.reader(OLD.FINGERPRINT)


def test_a_renamed_contract_reads_records_of_its_old_name() -> None:
    renamed = contract_of(record("Term", field("text", "string"), aliases=["Word"]))
    catalog = Catalog.of(renamed)
    catalog.learn(OLD.SCHEMA)

    assert Codec(catalog).decode(Codec(Catalog.of(OLD)).encode(OLD("hello"))) == renamed("hello")


def test_a_catalog_comes_back_from_its_topic() -> None:
    catalog = Catalog.of(contracts, NEW)
    catalog.learn(OLD.SCHEMA)

    assert from_records(to_records(catalog)).schemas == catalog.schemas


def test_the_records_of_the_topic_are_text_in_the_order_of_their_keys() -> None:
    records = to_records(Catalog.of(contracts, NEW))

    assert records == sorted(records)
    assert (f"{DeadLetter.FINGERPRINT:016x}".encode(), DeadLetter.SCHEMA.encode()) in records


def test_a_reader_needs_only_the_topic_to_read_what_a_newer_writer_wrote() -> None:
    topic = to_records(Catalog.of(NEW))

    codec = Codec(Catalog.of(OLD) | from_records(topic))

    assert codec.decode(Codec(Catalog.of(NEW)).encode(NEW("hello", 3))) == OLD("hello")


def test_a_deleted_schema_is_passed_over() -> None:
    assert not from_records([(b"00", None)]).schemas


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"0000000000000000", OLD.SCHEMA.encode(), f"which is {OLD.FINGERPRINT:016x}"),
        (b"0000000000000000", b"\xff", "expected UTF-8"),
        (b"0000000000000000", b"{", "expected JSON"),
    ],
)
def test_a_record_of_the_topic_that_is_no_schema_is_refused(key: bytes, value: bytes, reason: str) -> None:
    with pytest.raises(BadSchema, match=reason):
        learn_record(Catalog(), key, value)
