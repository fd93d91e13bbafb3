"""A record with a key that cannot be read ends neither the processors nor the API, on either kind of log."""

from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report, RestartPolicy
from kapelle.topology.journal import Mode
from tests.integration.api.places import Place, step, until


def test_commands_and_events_under_a_key_that_is_none_stop_nobody(place: Place) -> None:
    for key in ("v", "v/9223372036854775808"):
        for command in (
            c.RestartRun("bad-key", "ann", RestartPolicy.RESTART_FROM_BEGINNING),
            c.ReportTask("token", "load", "w", Report.SUCCEEDED),
        ):
            place.journal.publish(RUN_COMMANDS, key, command).result(30)
    place.journal.publish(RUN_EVENTS, "v", c.ReportRefused("load", "t", "w", Report.SUCCEEDED, "", 1)).result(30)

    workflow_id = place.push(step("only"))
    instance_id = place.start(workflow_id)

    assert place.ended(workflow_id, instance_id) == "SUCCEEDED"
    until(
        lambda: place.http.get(f"{place.url}/health").json()["views"]["unreadable"] >= 1, "the view to list the event"
    )
    assert place.http.get(f"{place.url}/health").json()["status"] == "ok"
    if place.journal.mode is Mode.EMBEDDED:  # on Kafka they are read with `kapelle dlq`
        reasons = [letter["reason"] for letter in place.get("/dead-letters")["elements"]]
        assert sum("Expected a workflow id, a slash" in reason for reason in reasons) >= 4
