"""Loops of a run: when all steps of an iteration have ended, the loop is repeated or left."""

from collections.abc import Mapping
from typing import Final

from kapelle.processors.params import ParamError
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.tables import LoopRow
from kapelle.schemas import contracts as c

ITERATIONS_MAX: Final = 25_000


class LoopTooLong(ParamError):
    """A loop would be repeated more often than it may be."""

    def __init__(self, header: str) -> None:
        super().__init__(f"Expected the loop of {header!r} to end within {ITERATIONS_MAX:,} iterations, but it did not")
        self.header = header


def loop_of(context: RunContext, header: str) -> LoopRow:
    """How far a loop is."""
    row = context.state.loops.get((context.key, header))
    if row is None:
        raise ValueError(f"Expected {context.key!r} to know the loop of {header!r}, but it does not")
    return row


def check_iterations(context: RunContext, back: Mapping[str, bool]) -> None:
    """Refuse to lead back into a loop that has had all its iterations."""
    for header, again in back.items():
        if again and loop_of(context, header).iteration >= ITERATIONS_MAX:
            raise LoopTooLong(header)


def end_iteration(context: RunContext, header: str) -> None:
    """If all steps of a loop are over, repeat the loop or leave it.

    An inner loop counts as one pending part of the loop around it. So the outer iteration cannot end while steps of
    the inner one are active, and leaving the inner loop may be what ends the outer one.
    """
    row = loop_of(context, header)
    if row.pending > 0:
        return
    if row.again:
        _enter(context, header)
    else:
        _leave(context, header, row)


def _enter(context: RunContext, header: str) -> None:
    plan, loops = context.plan, context.plan.graph.loops
    inside = [inner for inner, loop in loops.items() if loop.body <= loops[header].body]
    steps = tuple(step_id for step_id in plan.graph.order if step_id in loops[header].body)
    # Inner loops count on instead of beginning at 1: the iteration is part of the seed and the idempotency key of an
    # attempt, which must not repeat within a run.
    iterations = {inner: loop_of(context, inner).iteration + 1 for inner in inside}
    pending = {inner: plan.pending[inner] for inner in inside}
    context.emit(
        c.LoopEntered(
            run_id=context.run.run_id,
            header=header,
            steps=steps,
            iterations=iterations,
            pending=pending,
            at_ms=context.now_ms,
        )
    )
    context.ready.append(header)
    context.in_parts()


def _leave(context: RunContext, header: str, row: LoopRow) -> None:
    arrived: dict[str, int] = {}
    satisfied: dict[str, bool] = {}
    for source, target in context.plan.exits[header]:
        step = context.row(source)
        arrived[target] = arrived.get(target, 0) + 1
        holds = step is not None and step.successors.get(target, False)
        satisfied[target] = satisfied.get(target, False) or holds
    around = context.plan.graph.loops[header].parent
    run_id, now_ms = context.run.run_id, context.now_ms
    context.draft.emit(
        c.LoopEnded(
            run_id=run_id,
            header=header,
            iteration=row.iteration,
            arrived=arrived,
            satisfied=satisfied,
            at_ms=now_ms,
            loop=around,
        )
    )
    context.tell(arrived)
    if around is not None:
        end_iteration(context, around)
