"""Workflows in Python: steps are made, joined by `>>` and `when`, and pushed as JSON.

    etl = Workflow("etl", owner="ann", run_strategy=PARALLEL(3), params={"rows": 1000})
    load = etl.step("load", "NoOp", params={"n": expression("rows", "LONG")}, retry=Retry(errors=5))
    report = etl.step("report", "NoOp")
    alarm = etl.step("alarm", "NoOp")
    load.when("n > 0", report)
    load.otherwise(alarm)
    etl.to_json()

The JSON is what one would write by hand. It has only the options that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict, TypeVar, Unpack

import msgspec

from kapelle.client.parameters import BadWorkflow, Param, Params, Value, params_json
from kapelle.client.settings import (
    Announce,
    CatchUp,
    Criticality,
    FailureMode,
    On,
    Retry,
    RunStrategy,
    WaitFor,
    Written,
)

Members = dict[str, object]  # of an object of JSON

F = TypeVar("F", "Step", "Loop", "list[Step]")

ALWAYS: Final = "true"
_encoder = msgspec.json.Encoder(decimal_format="number")


class StepOptions(TypedDict, total=False):
    """Options of steps of every kind."""

    name: str
    description: str
    params: Params
    tags: Iterable[str]
    timeout: Written
    failure_mode: FailureMode
    waits_for: Iterable[WaitFor]
    announces: Iterable[Announce]


class SubworkflowOptions(StepOptions, total=False):
    """Options of a step that runs another workflow."""

    explicit_params: bool  # whether the child gets the parameters of the step only; default false


class TimeTriggerOptions(TypedDict, total=False):
    """Options of a time trigger."""

    fuzzy_max_delay: Written  # each tick starts later by a part of this, which depends on the workflow and the tick
    catch_up: CatchUp  # which of the ticks that were missed are started; default LATEST
    start: int | str  # no tick comes before this time


class TriggerOptions(TypedDict, total=False):
    """Options of a trigger."""

    since: int | str  # "latest", "earliest", a time, or milliseconds since 1970: from when on signals count
    expiry: Written  # for how long a signal waits for its partners


class WorkflowOptions(TypedDict, total=False):
    """Options of a workflow."""

    name: str
    description: str
    params: Params
    tags: Iterable[str]
    timeout: Written
    criticality: Criticality
    instance_step_concurrency: int
    step_concurrency: int


class Step:
    """A step of a workflow, or of a loop in it."""

    def __init__(self, block: Block, kind: str, step_id: str, body: Members) -> None:
        self.block = block
        self.kind = kind
        self.id = step_id
        self._body = body
        self._successors: dict[str, str] = {}

    def __rshift__(self, following: F) -> F:
        """`a >> b`: b follows a. Returns b, so that chains can be written. `a >> [b, c]` is a fan-out."""
        for step in following if isinstance(following, list) else [following]:
            self.when(ALWAYS, step)
        return following

    def __rrshift__(self, preceding: list[Step]) -> Step:
        """`[a, b] >> c`: c follows both."""
        for step in preceding:
            step.when(ALWAYS, self)
        return self

    def when(self, condition: str, following: Step) -> Step:
        """Add a successor that follows if an expression is true. Returns the successor."""
        if following.block is not self.block:
            raise BadWorkflow(f"Expected {following.id!r} in the same workflow or loop as {self.id!r}, but it is not")
        if following.id in self._successors:
            raise BadWorkflow(f"Expected one edge from {self.id!r} to {following.id!r}, but found a second")
        self._successors[following.id] = condition
        return following

    def otherwise(self, following: Step) -> Step:
        """Add a successor that follows if none of the conditions so far is true."""
        conditions = [f"({condition})" for condition in self._successors.values() if condition != ALWAYS]
        if not conditions:
            raise BadWorkflow(f"Expected a condition of {self.id!r} before otherwise, but found none")
        return self.when(f"!({' || '.join(conditions)})", following)

    def as_json(self) -> Members:
        """The step with the key of its kind around it."""
        transition = {"transition": {"successors": self._successors}} if self._successors else {}
        return {self.kind: {"id": self.id, **self._body, **transition, **self._inner()}}

    def _inner(self) -> Members:
        """The members of a step that has steps of its own."""
        return {}


class Block:
    """A block of steps: those of a workflow, or those inside a loop."""

    def __init__(self, ids: set[str]) -> None:
        self.steps: list[Step] = []
        self._ids = ids

    def step(
        self,
        step_id: str,
        step_type: str,
        *,
        retry: Retry | None = None,
        idempotent: bool = True,
        **options: Unpack[StepOptions],
    ) -> Step:
        """Add a step. The type is built in, such as NoOp or Sleep, or served by your workers."""
        own: Members = {"type": step_type}
        if retry is not None:
            own["retry_policy"] = retry.as_json()
        if not idempotent:
            own["idempotent"] = False
        return self._add("step", step_id, own, options)

    def subworkflow(
        self,
        step_id: str,
        workflow_id: str | Param,
        *,
        version: str | int | Param = "",
        sync: bool = True,
        **options: Unpack[SubworkflowOptions],
    ) -> Step:
        """A step that runs another workflow. Its id and version may be expressions. It hands its `params` down."""
        given: dict[str, Value] = {"subworkflow_id": workflow_id}
        if version != "":
            given["subworkflow_version"] = str(version) if isinstance(version, int) else version
        return self._add("subworkflow", step_id, {} if sync else {"sync": False}, _with_own(given, options))

    def foreach(
        self,
        step_id: str,
        over: Params,
        *,
        concurrency: int | None = None,
        strict_ordering: bool = False,
        **options: Unpack[StepOptions],
    ) -> Loop:
        """A loop over all combinations of values: `over={"day": [1, 2], "region": ["eu", "us"]}`."""
        own: Members = {"concurrency": concurrency} if concurrency is not None else {}
        if strict_ordering:
            own["strict_ordering"] = True
        return self._loop("foreach", step_id, own, _looping(over, options))

    def repeat_while(self, step_id: str, condition: str, *, values: Params, **options: Unpack[StepOptions]) -> Loop:
        """A loop while a condition holds. Its steps change the condition through the parameters named in `values`."""
        return self._loop("while", step_id, {"condition": condition}, _looping(values, options))

    def _loop(self, kind: str, step_id: str, own: Members, options: StepOptions) -> Loop:
        loop = Loop(self, kind, step_id, self._checked(step_id, own, options), self._ids)
        self.steps.append(loop)
        return loop

    def _add(self, kind: str, step_id: str, own: Members, options: StepOptions) -> Step:
        step = Step(self, kind, step_id, self._checked(step_id, own, options))
        self.steps.append(step)
        return step

    def _checked(self, step_id: str, own: Members, options: StepOptions) -> Members:
        if step_id in self._ids:
            raise BadWorkflow(f"Expected a new id, but {step_id!r} is the id of another step of this workflow")
        self._ids.add(step_id)
        body: Members = {**own, **_given(options)}
        if "waits_for" in options:
            body["signal_dependencies"] = [signal.as_json() for signal in options["waits_for"]]
        if "announces" in options:
            body["signal_outputs"] = [signal.as_json() for signal in options["announces"]]
        return body


class Loop(Step, Block):
    """A step with inner steps, which are added with its own methods `step`, `foreach` and so on."""

    def __init__(self, block: Block, kind: str, step_id: str, body: Members, ids: set[str]) -> None:
        Step.__init__(self, block, kind, step_id, body)
        Block.__init__(self, ids)

    def _inner(self) -> Members:
        return {"steps": [step.as_json() for step in self.steps]}


class Workflow(Block):
    """A workflow to be pushed."""

    def __init__(
        self,
        workflow_id: str,
        *,
        owner: str | None = None,
        run_strategy: RunStrategy | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> None:
        super().__init__(set())
        self.id = workflow_id
        self._properties: Members = {"owner": owner} if owner is not None else {}
        if run_strategy is not None:
            self._properties["run_strategy"] = run_strategy.as_json()
        if "step_concurrency" in options:
            self._properties["step_concurrency"] = options["step_concurrency"]
        self._body_of_workflow = {"id": workflow_id, **_given(options)}
        self._time_triggers: list[Members] = []
        self._signal_triggers: list[Members] = []

    def at(self, cron: str, *, timezone: str = "UTC", **options: Unpack[TimeTriggerOptions]) -> Workflow:
        """Add a time trigger: a cron expression, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`."""
        is_named = cron.startswith("@")
        trigger: Members = {"type": "PREDEFINED", "expression": cron} if is_named else {"type": "CRON", "cron": cron}
        return self._timed(trigger, timezone, options)

    def every(
        self,
        interval: Written,
        *,
        anchor: int | str | None = None,
        timezone: str = "UTC",
        **options: Unpack[TimeTriggerOptions],
    ) -> Workflow:
        """Add a time trigger with an interval of elapsed time, such as `90m`.

        Its times are counted from `anchor`; without it, from `start`; without both, from 1970.
        """
        trigger: Members = {"type": "INTERVAL", "interval": interval}
        if anchor is not None:
            trigger["anchor"] = anchor
        return self._timed(trigger, timezone, options)

    def _timed(self, trigger: Members, timezone: str, options: TimeTriggerOptions) -> Workflow:
        if timezone != "UTC":
            trigger["timezone"] = timezone
        self._time_triggers.append({**trigger, **options})
        return self

    def on(
        self,
        *signals: str | On,
        params: Params | None = None,
        condition: str | None = None,
        dedup: str | None = None,
        **options: Unpack[TriggerOptions],
    ) -> Workflow:
        """Add a signal trigger. With several signals, one of each name must arrive and match by its join keys."""
        each = [On(signal) if isinstance(signal, str) else signal for signal in signals]
        trigger: Members = {"definitions": {signal.signal: signal.as_json() for signal in each}}
        if params:
            trigger["params"] = params_json(params)
        if condition is not None:
            trigger["condition"] = condition
        if dedup is not None:
            trigger["dedup_expr"] = dedup
        if "since" in options:
            trigger["from"] = options["since"]
        if "expiry" in options:
            trigger["expiry"] = options["expiry"]
        self._signal_triggers.append(trigger)
        return self

    def as_json(self) -> Members:
        """The push as an object of JSON."""
        workflow = dict(self._body_of_workflow)
        if self._time_triggers:
            workflow["time_triggers"] = self._time_triggers
        if self._signal_triggers:
            workflow["signal_triggers"] = self._signal_triggers
        workflow["steps"] = [step.as_json() for step in self.steps]
        return {**({"properties": self._properties} if self._properties else {}), "workflow": workflow}

    def to_json(self) -> str:
        """The push as JSON text."""
        return _encoder.encode(self.as_json()).decode()


def _looping(values: Params, options: StepOptions) -> StepOptions:
    return _with_own({"loop_params": Param("MAP", value=dict(values))}, options)


def _with_own(own: Mapping[str, Value], options: StepOptions) -> StepOptions:
    """The options with the parameters that the kind of the step needs."""
    params = options.get("params", {})
    if twice := own.keys() & params.keys():
        raise BadWorkflow(f"Expected {min(twice)!r} as an argument alone, but found it in params too")
    return {**options, "params": {**own, **params}}


def _given(options: StepOptions | WorkflowOptions) -> Members:
    """The options that are keys of the JSON too."""
    elsewhere = ("waits_for", "announces", "step_concurrency")
    made: Members = {key: value for key, value in options.items() if key not in elsewhere}
    if "params" in options:
        made["params"] = params_json(options["params"])
    if "tags" in options:
        made["tags"] = list(options["tags"])
    return made
