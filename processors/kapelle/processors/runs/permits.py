"""The permits of an attempt: which it needs, and how it asks for them.

| key | limits the attempts of | if |
|---|---|---|
| `tag/<tag>` | steps with the tag, and steps below a composite step or workflow with it | somebody has limited it |
| `workflow/<id>` | all instances of a workflow, with iterations and rounds | its properties have `step_concurrency` |
| `tree/<instance>` | an instance and all its children | its definition has `instance_step_concurrency` |

1. An attempt asks for one permit after the other, and keeps those that it has: first of the trees in the order of their
   keys, but of the root last, then of the workflow, then of the tags in the order of their names. Every attempt asks in
   the same order, so no circle of attempts can wait for each other. Narrow limits come first, so what waits for a limit
   of its own instance or workflow holds no permit of a tag that steps of others could use.
2. Only leaf steps need permits. A composite step that held one while its children wait for it would wait for ever.
3. A partition remembers whether a tag is limited. The first attempt with a new tag asks and makes `permits` tell the
   partition of later changes. So a step whose tags nobody limits asks for nothing.
4. The end of an attempt returns its permits, whatever the end is: `RunContext.change` sees to that.
"""

from typing import Final

from kapelle.processors.definitions import StepKind
from kapelle.processors.keys import TAG, tag_key
from kapelle.processors.params import Definition, ParamError, ParamType
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.context import Params, RunContext, holder_of
from kapelle.processors.runs.limits import has_limits
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.wiring import PERMIT_INTERNAL
from kapelle.schemas import contracts as c

TAG_CHARS_MAX: Final = 256
PERMITS_MAX: Final = 100  # of one attempt
REFERS: Final = "$"  # the sign of a reference in a literal text


class BadTag(ParamError):
    """A tag whose references give something that cannot be a tag."""


class TooManyPermits(ParamError):
    """An attempt that needs more permits than one may have."""

    def __init__(self, step_id: str, count: int) -> None:
        super().__init__(f"Expected step {step_id!r} to need at most {PERMITS_MAX} permits, but it needs {count:,}")
        self.count = count


def needed(context: RunContext, step: StepPlan, attempt: Attempt, params: Params) -> tuple[str, ...]:
    """What an attempt needs permits for, in the order in which it asks: rule 1."""
    if not step.tags and not has_limits(context.run, context.plan):
        return ()
    if step.step.kind is not StepKind.STEP:
        tags_below(context, step, attempt, params)  # a composite step fails now if its children could not start
        return ()
    around = context.around
    tags = {*around.tags, *resolved_tags(context, step, attempt, params)}
    limited = sorted(key for key in map(tag_key, tags) if _may_be_limited(context, key))
    keys = (*around.limits, *limited)
    if len(keys) > PERMITS_MAX:
        raise TooManyPermits(attempt.step_id, len(keys))
    return keys


def tags_below(context: RunContext, step: StepPlan, attempt: Attempt, params: Params) -> tuple[str, ...]:
    """The tags that count for the permits of the children of a composite step."""
    parent = context.run.parent
    above = parent.tags if parent is not None else ()
    own = resolved_tags(context, step, attempt, params)
    return tuple(sorted({*above, *own})) if above else own


def resolved_tags(context: RunContext, step: StepPlan, attempt: Attempt, params: Params) -> tuple[str, ...]:
    """The tags of a step and its workflow, with the values of what they refer to."""
    definitions = {tag: Definition(type=ParamType.STRING, value=tag) for tag in step.tags if REFERS in tag}
    if not definitions:
        return step.tags
    values = context.expressions.values(definitions, step, attempt, params)
    return tuple(_checked(tag, values[tag].value) if tag in values else tag for tag in step.tags)


def _checked(written: str, tag: object) -> str:
    if not isinstance(tag, str) or not 0 < len(tag) <= TAG_CHARS_MAX:
        raise BadTag(f"Expected the tag {written!r} to become 1 to {TAG_CHARS_MAX} characters, but found {tag!r:.80}")
    return tag


def _may_be_limited(context: RunContext, key: str) -> bool:
    row = context.state.tags.get((key,))
    return row is None or row.is_limited


def ask(context: RunContext, step_id: str) -> None:
    """Ask for the next permit that a waiting attempt needs."""
    row = context.row(step_id)
    if row is None or row.held >= len(row.permits):
        raise ValueError(f"Expected step {step_id!r} of {context.key!r} to need another permit, but it does not")
    key, around = row.permits[row.held], context.around
    watches = key.startswith(TAG) and context.state.tags.get((key,)) is None
    if watches:
        learned = c.LimitLearned(limited=key, is_limited=True, sequence=0, at_ms=context.now_ms)
        context.draft.emit(learned)
    limit = around.limits.get(key)
    context.draft.send(
        PERMIT_INTERNAL,
        key,
        c.RequestPermit(
            holder=holder_of(context.key, step_id, row),
            workflow_id=around.workflow_id,
            criticality=around.criticality,
            max=None if limit is None else limit.max,
            snapshot=0 if limit is None else limit.snapshot,
            watches=watches,
        ),
    )
