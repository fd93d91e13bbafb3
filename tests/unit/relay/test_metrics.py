"""The counts of a relay: exposed in the order of their table, and logged now and then."""

import logging

import pytest

from kapelle.relay.metrics import LOG_S, OUTBOX, Tally, Waits

LOG = logging.getLogger("kapelle.test.tally")


class Counts(Waits):
    """As the outbox has them."""

    published: int = 0
    refused: int = 0


def test_counts_are_exposed_under_the_names_of_their_table_and_in_its_order() -> None:
    exposed = Tally(Counts(published=3), OUTBOX, LOG, "relayed").exposition()

    values = [line for line in exposed.splitlines() if not line.startswith("#")]
    assert values == [
        "kapelle_outbox_published_total 3",
        "kapelle_outbox_refused_total 0",
        "kapelle_outbox_waits_total 0",
    ]


def test_a_wait_is_counted_and_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()

    Tally(counts, OUTBOX, LOG, "relayed").waits_for(TimeoutError("the broker"))

    assert counts.waits == 1
    assert [(record.message, str(vars(record)["fields"]["reason"])) for record in caplog.records] == [
        ("waiting", "the broker")
    ]


def test_counts_are_logged_now_and_then_and_not_in_between(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = [100.0]
    caplog.set_level(logging.INFO)
    tally = Tally(Counts(), OUTBOX, LOG, "relayed", now_s=lambda: now_s[0])

    tally.log_now_and_then()
    now_s[0] += LOG_S
    tally.log_now_and_then()
    tally.log_now_and_then()

    assert [vars(record)["fields"] for record in caplog.records] == [{"published": 0, "refused": 0, "waits": 0}]
