"""Iterations and rounds: instances of a block, started by the shard of their parent, with no queue between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kapelle.processors.keys import run_key
from kapelle.processors.params import ParamError
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.composites import child_values, counts, identity, sizes
from kapelle.processors.runs.composites.fan import fan_at
from kapelle.processors.runs.context import CHARS_PER_START, Params
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.params import layer_of, parsed_object
from kapelle.processors.runs.permits import tags_below
from kapelle.processors.runs.plan import StepPlan, ids_in_block
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import ChildRow, FanRow
from kapelle.processors.sel import Value
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, RestartPolicy

BEGINNING: Final = Restart(RestartPolicy.RESTART_FROM_BEGINNING)


class Block:
    """What all children of one attempt have in common, made once for all that a decision starts."""

    def __init__(self, flow: Flow, step: StepPlan, params: Params, *, carries: tuple[str, ...] = ()) -> None:
        step_id = step.step.id
        fan = fan_at(flow, step_id)
        self.flow = flow
        self.fan: FanRow = fan
        self.attempt = Attempt(step_id, fan.attempt, fan.iteration, 0)
        self.workflow_id = identity.inline_id(fan.kind, flow.key, step_id)
        self.definition = flow.plan.blocks[step_id]
        self.parent = identity.parent_of(
            flow,
            self.attempt,
            fan.kind,
            total=fan.total if fan.kind is ChildKind.FOREACH else 1,  # how many rounds a while step makes, nobody knows
            asks=flow.plan.asks.get(step_id, ()),
            carries=carries,
            tags=tags_below(flow, step, self.attempt, params),
        )
        self.initiator = identity.initiator_text(flow, self.parent)
        self.layers = child_values.layers_for(flow, step, params)
        self.step_run_params = _of_block(flow.run.step_run_params, self.definition)
        chars = len(self.definition) + len(self.step_run_params) + sum(len(layer.text or "") for layer in self.layers)
        self.weight = 1 + chars // CHARS_PER_START

    def start(
        self, number: int, row: ChildRow | None, values: Mapping[str, Value], *, restart: Restart | None = None
    ) -> None:
        """Start one child with its loop values. Its row says which run it is."""
        run = self.flow.run
        run_id = row.run_id if row is not None else counts.next_run_id(self.fan, None)
        if restart is None and row is not None and row.launched > 1:
            restart = BEGINNING
        self.flow.sent += self.weight
        # Parameters that a restart gives to this very child replace its loop values.
        own = restart.params if restart is not None and not restart.path else None
        self.flow.draft.send(
            RUN_INTERNAL,
            run_key(self.workflow_id, number),
            c.StartRun(
                workflow_id=self.workflow_id,
                instance_id=number,
                run_id=run_id,
                request_id=identity.request_of(self.flow, self.attempt, number),
                version=run.version,
                definition=self.definition,
                initiator=self.initiator,
                params=own or child_values.loop_values(values, number - 1),
                step_run_params=self.step_run_params,
                run_properties=run.run_properties,
                correlation_id=run.correlation_id,
                restart=None if restart is None else restart.json(),
                author=run.author,
                parent=replace(self.parent, number=number),
                layers=self.layers,
                breakpoints=run.breakpoints,
                breakpoints_generation=run.breakpoints_generation,
            ),
        )


class Own(msgspec.Struct, frozen=True):
    """What the start of one child has of its own."""

    values: Callable[[], str]  # made only if the start may be too large
    chars_max: int  # of the values and of the parameters of the step
    restart: Restart | None = None


def refusal_of_start(flow: Flow, step: StepPlan, params: Params, own: Own) -> str | None:
    """Why a child cannot be started: a tag has no value, or a record cannot hold the start. None if it can."""
    step_id = step.step.id
    row = flow.row(step_id)
    attempt = Attempt(step_id, 1, 1, 0) if row is None else attempt_of(step_id, row)
    try:
        tags = tags_below(flow, step, attempt, params)
    except ParamError as error:
        return str(error)
    return _too_large(flow, step, params, own, tags=tags)


def _too_large(flow: Flow, step: StepPlan, params: Params, own: Own, *, tags: tuple[str, ...]) -> str | None:
    """Most starts are far from the limit: they are not written to be measured, but bounded by what they are made of."""
    step_id, run = step.step.id, flow.run
    definition = flow.plan.blocks[step_id]
    asked = "" if own.restart is None else own.restart.json()
    known = sum(len(layer_of(flow.state, digest).text) for digest in run.layers)
    breakpoints = "" if not run.breakpoints else msgspec.json.encode(run.breakpoints).decode()
    rest = (definition, run.params, run.step_run_params, run.run_properties, run.initiator, asked, breakpoints, *tags)
    if sizes.UTF8_MAX * (known + own.chars_max + 2 * sum(map(len, rest))) <= sizes.START_BYTES_MAX:
        return None
    return sizes.too_large(
        f"the start of a child of step {step_id!r}",
        {
            "parameters around it": [layer.text or "" for layer in child_values.layers_for(flow, step, params)],
            "its own": [own.values()],
            # The start of a run that is a restart names the steps that run again.
            "its steps": [definition] if own.restart is None else [definition, definition],
            "the rest": [_of_block(run.step_run_params, definition), *rest[3:]],
        },
    )


def _of_block(text: str, block: str) -> str:
    """Of the parameters that are given for steps, those for steps of a block, at any depth."""
    if text == "{}":
        return text
    inside = ids_in_block(block)
    return msgspec.json.encode(
        {name: params for name, params in parsed_object(text).items() if name in inside}
    ).decode()
