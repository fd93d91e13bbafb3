"""The identity of children: their keys, the requests that start them, and the list of their ancestors.

All of it follows from the parent, so a repeated decision makes the same child.
"""

from hashlib import sha256
from typing import Final, TypedDict, Unpack

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.processors.keys import run_key
from kapelle.processors.parents import INLINE
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.causes import cause_of_children
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.limits import step_limits
from kapelle.schemas.contracts import ChildKind, Parent

ANCESTORS_MAX: Final = 9  # of a child: a tree has ten levels
HASH_CHARS: Final = 24
# The ids of workflows that people push must not begin like this.
PREFIXES: Final = {ChildKind.FOREACH: "maestro_foreach_", ChildKind.WHILE: "maestro_while_"}


def inline_id(kind: ChildKind, key: str, step_id: str) -> str:
    """The workflow id of the iterations of a foreach step, or of the rounds of a while step."""
    return PREFIXES[kind] + sha256(f"{key}/{step_id}".encode()).hexdigest()[:HASH_CHARS]


def is_inline(workflow_id: str) -> bool:
    """Whether a workflow id is that of iterations or rounds: no such workflow was pushed."""
    return workflow_id.startswith(tuple(PREFIXES.values()))


def child_key(kind: ChildKind, key: str, step_id: str, number: int) -> str:
    """The key of an iteration or a round."""
    return run_key(inline_id(kind, key, step_id), number)


def request_of(context: RunContext, attempt: Attempt, number: int) -> str:
    """The request that starts a child: one for each attempt and number. It is a digest, because a request has a limit
    of length, and ids of workflows and steps together do not."""
    identity = f"{context.key}/{context.run.run_id}/{attempt.step_id}/{attempt.iteration}.{attempt.attempt}/{number}"
    return f"child-{sha256(identity.encode()).hexdigest()[:32]}"


class _More(TypedDict, total=False):
    is_sync: bool
    tags: tuple[str, ...]
    asks: tuple[str, ...]
    carries: tuple[str, ...]


def iterations_above(context: RunContext) -> int:
    """How many instances like this one the loops above it may run: the product of their numbers of iterations."""
    return context.run.parent.iterations if context.run.parent else 1


def parent_of(
    context: RunContext, attempt: Attempt, kind: ChildKind, *, total: int = 1, **more: Unpack[_More]
) -> Parent:
    """What a child knows of its parent. `total` is the number of iterations. The number of the child is given later."""
    above = context.run.parent
    return Parent(
        step_limits=step_limits(context.key, context.run, context.plan),
        criticality=context.around.criticality,
        key=context.key,
        run_id=context.run.run_id,
        step_id=attempt.step_id,
        attempt=attempt.attempt,
        iteration=attempt.iteration,
        number=1,
        kind=kind,
        root=above.root if above else context.key,
        root_run_id=above.root_run_id if above else context.run.run_id,
        # Iterations and rounds belong to the nearest ancestor whose workflow was pushed.
        home=above.home if above and above.kind in INLINE else context.key,
        depth=above.depth + 1 if above else 1,
        iterations=iterations_above(context) * total,
        **more,
    )


def initiator_text(context: RunContext, parent: Parent) -> str:
    """What starts the children of a step, as JSON: its kind, the ancestors from the root on, and its cause."""
    run = context.run
    above: list[dict[str, str | int | bool]] = initiator_of(run.initiator).ancestors if run.parent is not None else []
    here = {
        "workflow_id": run.workflow_id,
        "instance_id": run.instance_id,
        "run_id": run.run_id,
        "step_id": parent.step_id,
        "step_attempt_id": parent.attempt,
        "sync": parent.is_sync,
    }
    cause = cause_of_children(context.key, run.initiator)
    return msgspec.json.encode({"type": parent.kind, "ancestors": [*above, here], "cause": cause}).decode()
