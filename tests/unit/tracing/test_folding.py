"""Our history as spans: which there are, from when to when, whose children they are, and always the same."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, SIGNALS, WORKFLOW_COMMANDS
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.headers import trace_of
from kapelle.testing import Engine
from kapelle.topology.journal import Entry
from kapelle.tracing.fold import FOLDINGS, FOLLOWED, Folding
from kapelle.tracing.ids import Ids
from kapelle.tracing.spans import Past, Span, Verdict

OUTSIDE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OUTSIDE_TOO = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
TRACE_ID = 0x4BF92F3577B34DA6A3CE929D0E0E4736
PARENT_ID = 0x00F067AA0BA902B7
IDS = Ids("shop")


def pasts(engine: Engine, stream: Any) -> Iterator[Past]:
    codec, at = Codec(engine.topology.catalog()), 0
    while records := engine.runtime.read(stream, 0, at, 1_000):
        for one in records:
            entry = Entry(stream.name, 0, one.offset, (one.key or b"").decode(), codec.decode(one.value or b""), 0)
            yield Past(entry, f"test.{stream.name}", trace_of(one.headers))
        at = records[-1].offset + 1


def told(engine: Engine, ids: Ids = IDS) -> list[Span]:
    foldings = {stream: FOLDINGS[stream.name](ids) for stream in FOLLOWED}
    return [span for stream, folding in foldings.items() for past in pasts(engine, stream) for span in folding.of(past)]


def named(spans: Sequence[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found


def announce(engine: Engine, name: str, params: str = "{}", trace: str | None = None) -> None:
    headers = [("traceparent", trace.encode())] if trace else []
    engine.runtime.publish(SIGNALS, name, c.AnnounceSignal(name, "", params, "{}"), headers=headers)
    engine.runtime.step_until_idle()


def workflow(name: str, *steps: dict[str, Any], triggers: Any = (), strategy: str = "PARALLEL") -> dict[str, Any]:
    body = {"id": name, "steps": [{"step": one} for one in steps], "signal_triggers": list(triggers)}
    return {"properties": {"owner": "ann", "run_strategy": strategy}, "workflow": body}


LOAD = {"id": "load", "type": "loader"}
ON_ORDERS: list[Any] = [{"definitions": {"orders": {}}}]
ON_BOTH: list[Any] = [{"definitions": {"orders": {"join_keys": ["day"]}, "rates": {"join_keys": ["day"]}}}]


def test_one_trace_goes_from_the_signal_to_the_finished_step() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_ORDERS))
    announce(engine, "orders")
    (task,) = engine.tasks()
    engine.advance(5_000)
    task.succeed()

    spans = told(engine)

    assert [span.name for span in spans] == ["signal orders", "trigger etl", "queue etl", "step load", "run etl"]
    signal, trigger, queue, step, run = spans
    assert {span.trace_id for span in spans} == {signal.trace_id}
    assert len({span.span_id for span in spans}) == 5
    assert [one.parent_id for one in (signal, trigger, queue, run, step)] == [
        None,
        signal.span_id,
        trigger.span_id,
        trigger.span_id,
        run.span_id,
    ]


def test_spans_begin_and_end_when_it_was() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD))
    run = engine.start("etl")
    engine.advance(1_000)
    engine.task(run, "load").begin()
    engine.advance(5_000)
    engine.task(run, "load").succeed()

    spans = told(engine)

    step, whole = named(spans, "step load"), named(spans, "run etl")
    assert (step.end_ms - step.start_ms, whole.end_ms - whole.start_ms) == (6_000, 6_000)
    began = next(one.at_ms for one in step.moments if one.name == "RUNNING")
    assert began - step.start_ms == 1_000
    assert step.verdict is whole.verdict is Verdict.OK


def test_a_span_says_what_it_is_about_and_where_that_stands() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD))
    engine.task(engine.start("etl"), "load").succeed()

    step = named(told(engine), "step load")

    offset = step.attributes.pop("messaging.kafka.offset")
    assert isinstance(offset, int)
    assert step.attributes == {
        "kapelle.workflow": "etl",
        "kapelle.instance": 1,
        "kapelle.run": 1,
        "kapelle.step": "load",
        "kapelle.iteration": 1,
        "kapelle.attempt": 1,
        "kapelle.status": "SUCCEEDED",
        "messaging.system": "kafka",
        "messaging.destination.name": "test.runs.events",
        "messaging.destination.partition.id": "0",
    }


def test_each_attempt_is_a_span_of_its_own_and_a_failed_one_says_why() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD | {"retry_policy": {"error_retry_limit": 1}}))
    run = engine.start("etl")
    engine.task(run, "load").fail("no such table")
    engine.advance(3_600_000)
    engine.task(run, "load").succeed()

    first, second = (span for span in told(engine) if span.name == "step load")

    assert first.verdict is Verdict.ERROR
    assert "no such table" in first.reason
    assert second.verdict is Verdict.OK
    assert first.span_id != second.span_id
    assert first.parent_id == second.parent_id


def test_a_joined_start_is_in_the_trace_of_the_signal_that_came_last_and_linked_to_the_others() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_BOTH))
    announce(engine, "rates", '{"day": 1}')
    announce(engine, "orders", '{"day": 1}')
    announce(engine, "orders", '{"day": 2}')
    announce(engine, "rates", '{"day": 2}')

    spans = told(engine)

    signals = {(s.attributes["kapelle.signal"], s.attributes["kapelle.signal.number"]): s for s in spans[:4]}
    first, second = (span for span in spans if span.name == "trigger etl")
    assert (first.trace_id, first.parent_id) == (signals["orders", 1].trace_id, signals["orders", 1].span_id)
    assert (second.trace_id, second.parent_id) == (signals["rates", 2].trace_id, signals["rates", 2].span_id)
    rates, orders = signals["rates", 1], signals["orders", 2]
    assert [(one.trace_id, one.span_id) for one in first.links] == [(rates.trace_id, rates.span_id)]
    assert [(one.trace_id, one.span_id) for one in second.links] == [(orders.trace_id, orders.span_id)]
    queued = [span.trace_id for span in spans if span.name == "queue etl"]
    assert queued == [first.trace_id, second.trace_id]


def test_a_trace_from_outside_goes_on_through_signal_trigger_run_and_step() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_ORDERS))
    announce(engine, "orders", trace=OUTSIDE)
    engine.tasks()[0].succeed()

    spans = told(engine)

    assert {span.trace_id for span in spans} == {TRACE_ID}
    signal = named(spans, "signal orders")
    assert (signal.parent_id, signal.is_parent_remote) == (PARENT_ID, True)
    assert named(spans, "run etl").parent_id == named(spans, "trigger etl").span_id


def test_the_partners_of_a_joined_start_are_linked_in_the_traces_that_they_came_with() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_BOTH))
    announce(engine, "rates", '{"day": 1}', trace=OUTSIDE_TOO)
    announce(engine, "orders", '{"day": 1}', trace=OUTSIDE)

    fired = named(told(engine), "trigger etl")

    assert fired.trace_id == TRACE_ID
    assert [f"{one.trace_id:032x}" for one in fired.links] == ["0af7651916cd43dd8448eb211c80319c"]


ANNOUNCES = {"id": "tell", "type": "teller", "signal_outputs": {"definitions": [{"name": "told"}]}}
ON_TOLD: list[Any] = [{"definitions": {"told": {}}}]


def chained(engine: Engine, trace: str | None = None) -> list[Span]:
    """Two workflows: a step of the first announces what starts the second."""
    engine.push(workflow("first", ANNOUNCES, triggers=ON_ORDERS))
    engine.push(workflow("second", LOAD, triggers=ON_TOLD))
    announce(engine, "orders", trace=trace)
    for _ in range(2):
        engine.tasks()[-1].succeed()
    return told(engine)


def test_a_signal_that_a_step_announces_is_linked_to_that_step_in_its_trace() -> None:
    spans = chained(Engine())

    step, signal = named(spans, "step tell"), named(spans, "signal told")
    assert [(one.trace_id, one.span_id) for one in signal.links] == [(step.trace_id, step.span_id)]
    assert {name: step.attributes[name] for name in signal.links[0].attributes} == signal.links[0].attributes
    assert signal.parent_id is None
    assert step.trace_id == named(spans, "signal orders").trace_id
    assert signal.trace_id == named(spans, "run second").trace_id != step.trace_id


def test_a_run_that_no_signal_started_is_linked_as_well() -> None:
    engine = Engine()
    engine.push(workflow("first", ANNOUNCES))
    engine.start("first")
    engine.tasks()[-1].succeed()

    spans = told(engine)

    step, signal = named(spans, "step tell"), named(spans, "signal told")
    assert [(one.trace_id, one.span_id) for one in signal.links] == [(step.trace_id, step.span_id)]


def test_a_signal_of_a_join_is_linked_to_a_step_in_the_trace_of_the_one_that_came_last() -> None:
    engine = Engine()
    engine.push(workflow("first", ANNOUNCES, triggers=ON_BOTH))
    announce(engine, "rates", '{"day": 1}')
    announce(engine, "orders", '{"day": 1}')
    engine.tasks()[-1].succeed()

    spans = told(engine)

    (link,) = named(spans, "signal told").links
    assert (link.trace_id, link.span_id) == (named(spans, "signal orders").trace_id, named(spans, "step tell").span_id)


def test_a_trace_from_outside_is_linked_where_nobody_carried_it_on() -> None:
    spans = chained(Engine(), trace=OUTSIDE)

    (link,) = named(spans, "signal told").links
    assert (link.trace_id, link.span_id) == (TRACE_ID, named(spans, "step tell").span_id)


def test_a_trace_from_outside_that_workers_carry_on_goes_from_the_step_through_its_signal() -> None:
    engine = Engine()
    engine.push(workflow("first", ANNOUNCES | {"type": "NoOp"}, triggers=ON_ORDERS))
    engine.push(workflow("second", LOAD, triggers=ON_TOLD))
    announce(engine, "orders", trace=OUTSIDE)
    engine.tasks()[-1].succeed()

    spans = told(engine)

    assert {span.trace_id for span in spans} == {TRACE_ID}
    signal = named(spans, "signal told")
    assert (signal.parent_id, signal.is_parent_remote) == (named(spans, "step tell").span_id, False)
    assert signal.links == ()


def test_a_step_that_is_not_told_of_is_not_linked() -> None:
    engine = Engine()
    spans = chained(engine, trace=UNSAMPLED)

    assert named(spans, "signal told").links == ()


@pytest.mark.parametrize("source", ["{}", '{"workflow_id": "etl"}', '{"workflow_id": 7, "cause": {}}'])
def test_whoever_announces_may_say_what_they_like_of_themselves(source: str) -> None:
    engine = Engine()
    engine.runtime.publish(SIGNALS, "orders", c.AnnounceSignal("orders", "", "{}", "{}", source=source))
    engine.runtime.step_until_idle()

    assert named(told(engine), "signal orders").links == ()


def test_a_start_that_carries_a_trace_is_its_child_however_long_it_is_queued() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, strategy="SEQUENTIAL"))
    first = engine.start("etl")
    start = c.StartInstances("ann", (c.Start("mine"),))
    engine.runtime.publish(WORKFLOW_COMMANDS, "etl", start, headers=[("traceparent", OUTSIDE.encode())])
    engine.runtime.step_until_idle()
    engine.advance(60_000)
    engine.task(first, "load").succeed()
    engine.tasks()[-1].succeed()

    spans = [span for span in told(engine) if span.attributes["kapelle.instance"] == 2]

    assert {span.trace_id for span in spans} == {TRACE_ID}
    queue, run = named(spans, "queue etl"), named(spans, "run etl")
    assert (queue.parent_id, run.parent_id) == (PARENT_ID, PARENT_ID)
    assert queue.is_parent_remote
    assert run.is_parent_remote
    assert queue.end_ms - queue.start_ms == 60_000


def test_a_restarted_run_is_in_the_trace_of_its_instance() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_ORDERS))
    announce(engine, "orders")
    engine.tasks()[-1].fail("no", report=c.Report.FATAL_ERROR)
    run = engine.tasks()[-1]
    command = c.RestartRun("again", "ann", c.RestartPolicy.RESTART_FROM_BEGINNING)
    engine.send(RUN_COMMANDS, run.key, command)
    engine.tasks()[-1].succeed()

    runs = [span for span in told(engine) if span.name == "run etl"]

    assert [span.verdict for span in runs] == [Verdict.ERROR, Verdict.OK]
    assert len({span.trace_id for span in runs}) == 1
    assert len({span.span_id for span in runs}) == 2


def test_an_instance_that_never_leaves_the_queue_ends_there() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, strategy="FIRST_ONLY"))
    engine.start("etl")
    engine.start("etl")

    spans = [span for span in told(engine) if span.attributes["kapelle.instance"] == 2]

    assert [(span.name, span.attributes["kapelle.status"]) for span in spans] == [("queue etl", "STOPPED")]


def test_a_step_that_no_condition_leads_to_has_no_span() -> None:
    engine = Engine()
    first = {"id": "first", "type": "NoOp", "transition": {"successors": {"second": "false"}}}
    engine.push(workflow("etl", first, {"id": "second", "type": "NoOp"}))
    engine.start("etl")

    assert "step second" not in [span.name for span in told(engine)]


def test_a_step_that_waits_for_a_signal_tells_when_it_came() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "wait", "type": "NoOp", "signal_dependencies": [{"name": "rates"}]}))
    engine.start("etl")
    engine.advance(7_000)
    announce(engine, "rates")

    step = named(told(engine), "step wait")

    (matched,) = [one for one in step.moments if one.name == "DEPENDENCY_MATCHED"]
    assert matched.at_ms - step.start_ms == 7_000
    assert matched.attributes == {"kapelle.signal": "rates", "kapelle.signal.number": 1}


def test_what_strangers_do_not_sample_is_not_told() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_ORDERS))
    announce(engine, "orders", trace=UNSAMPLED)
    engine.tasks()[0].succeed()

    assert told(engine) == []


def test_a_sample_holds_whole_traces() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "NoOp"}, triggers=ON_ORDERS))
    for number in range(40):
        announce(engine, "orders", f'{{"n": {number}}}')

    everything, half = told(engine), told(engine, Ids("shop", 0.5))

    traces = {span.trace_id for span in half}
    assert 5 < len(traces) < 35
    assert half == [span for span in everything if span.trace_id in traces]


@pytest.mark.parametrize("stream", FOLLOWED, ids=lambda stream: str(stream.name))
def test_whoever_begins_at_since_tells_the_rest_as_if_it_had_read_everything(stream: Any) -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, {"id": "also", "type": "loader"}, triggers=ON_BOTH, strategy="SEQUENTIAL"))
    for number in range(6):
        announce(engine, "orders", f'{{"day": {number}}}', trace=OUTSIDE_TOO if number % 2 else None)
    for number in range(5):
        announce(engine, "rates", f'{{"day": {number}}}', trace=OUTSIDE if number % 3 else None)
        for task in engine.tasks()[-2:]:
            task.succeed()
    history = list(pasts(engine, stream))
    whole: Folding = FOLDINGS[stream.name](IDS)
    spans = [list(whole.of(past)) for past in history]
    assert sum(map(len, spans)) > 4

    for cut in range(len(history)):
        before: Folding = FOLDINGS[stream.name](IDS)
        for past in history[:cut]:
            list(before.of(past))
        since = before.since if before.since is not None else history[cut].entry.offset
        after: Folding = FOLDINGS[stream.name](IDS)
        again = [list(after.of(past)) for past in history if past.entry.offset >= since]

        assert again[-(len(history) - cut) :] == spans[cut:]


def test_nothing_is_remembered_of_what_has_ended() -> None:
    engine = Engine()
    engine.push(workflow("etl", LOAD, triggers=ON_ORDERS))
    announce(engine, "orders", trace=OUTSIDE)
    engine.tasks()[0].succeed()

    for stream in FOLLOWED:
        folding: Folding = FOLDINGS[stream.name](IDS)
        for past in pasts(engine, stream):
            list(folding.of(past))
        assert folding.since is None


def test_ids_never_change() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "NoOp"}, triggers=ON_ORDERS))
    announce(engine, "orders")

    found = {span.name: f"{span.trace_id:032x} {span.span_id:016x}" for span in told(engine, Ids("kapelle"))}

    assert found == {
        "signal orders": "7e67114bcdd54d9469afcf4754a2477c 9a2f55767c61e8a1",
        "trigger etl": "7e67114bcdd54d9469afcf4754a2477c 713c25af32c36a83",
        "queue etl": "7e67114bcdd54d9469afcf4754a2477c 616a5dfc4322f0f3",
        "step load": "7e67114bcdd54d9469afcf4754a2477c bedf5d14607bcaaa",
        "run etl": "7e67114bcdd54d9469afcf4754a2477c 24e358d4ff530985",
    }
