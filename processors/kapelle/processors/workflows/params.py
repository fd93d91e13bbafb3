"""The parameters of an instance, evaluated when it is created, and only those that can be read.

Every workflow has some two dozen system defaults, most of them dates as text, and most workflows use few. So only those
are evaluated that the definition or the request mentions, directly or by way of other defaults. A mention is a word
of that name anywhere in their texts: too much is found now and then, too little never. A text that asks `params` for a
name that it computes may mean any of them, and then all are evaluated. So are they if a subworkflow step hands down all
parameters of the workflow: the child may ask for any of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.definitions import Step, StepKind, Workflow, parse_workflow
from kapelle.processors.params import (
    SEL,
    WORKFLOW_DEFAULTS,
    WORKFLOW_RESTART,
    WORKFLOW_START,
    Context,
    Definition,
    Definitions,
    Evaluated,
    WorkflowScope,
    evaluate,
    merged,
    taken_over,
)
from kapelle.processors.params.host import InstanceFacts, ParamsHost
from kapelle.processors.params.stored import restored
from kapelle.processors.sel import Budget
from kapelle.processors.workflows.requests import STARTED_BY

DEFINITIONS_CACHED: Final = 512  # as many as are kept parsed
ALWAYS: Final = frozenset({"RUN_TS"})

_decoder: Final = msgspec.json.Decoder(float_hook=str)  # only words are looked for, and no number is one
_WORD: Final = re.compile(r"\w+", re.ASCII)
_ASKING: Final = re.compile(r"\bparams\b", re.ASCII)
# What `params` may be followed by without hiding a name: a literal one, or a function that gives no parameter.
_PLAINLY_ASKING: Final = re.compile(
    r"""\bparams\s*(?:
        \.\s*(?:get|containsKey)\s*\(\s*(?:"[^"\\]*"|'[^'\\]*')\s*\)
      | \[\s*(?:"[^"\\]*"|'[^'\\]*')\s*\]
      | \.\s*(?:getFrom\w+|nextUniqueId|getExecutionEnvironment)\s*\(
    )""",
    re.ASCII | re.VERBOSE,
)


class Mentioned(msgspec.Struct, frozen=True):
    """The words of some texts, and whether one of them asks for names that cannot be seen."""

    words: frozenset[str]
    is_open: bool


class Prepared(msgspec.Struct, frozen=True):
    """What a definition comes to before anybody starts it."""

    workflow: Workflow
    mentioned: Mentioned
    params: Mapping[str, Definition]


class NewRun(msgspec.Struct, frozen=True):
    """The run whose parameters are evaluated. Starts of the same command share one budget."""

    facts: InstanceFacts
    now_ms: int
    budget: Budget


@lru_cache(maxsize=DEFINITIONS_CACHED)
def prepared(definition: str) -> Prepared:
    """The workflow with its parameters merged as if nothing were given at the start."""
    workflow = parse_workflow(definition)
    mentioned = mentioned_in(_decoder.decode(definition))
    if _hands_down_all(workflow.steps):
        mentioned = msgspec.structs.replace(mentioned, is_open=True)
    layers = {"system defaults": defaults_for(mentioned), "definition": workflow.params}
    return Prepared(workflow, mentioned, merged(WORKFLOW_START, layers))


def _hands_down_all(steps: Iterable[Step]) -> bool:
    return any(
        (step.kind is StepKind.SUBWORKFLOW and not step.explicit_params) or _hands_down_all(step.steps)
        for step in steps
    )


def params_of(
    definition: str, given: Definitions, *, run: NewRun, also: Mapping[str, object] | None = None
) -> dict[str, Evaluated]:
    """The evaluated parameters of a new instance. `also` is what else the request says that may mention some."""
    ready = prepared(definition)
    if not given and not also:
        return _evaluated(ready.params, run)
    request = mentioned_in([_texts_of(given), also])
    both = Mentioned(ready.mentioned.words | request.words, ready.mentioned.is_open or request.is_open)
    layers = {"system defaults": defaults_for(both), "definition": ready.workflow.params, "run params": given}
    source = STARTED_BY[run.facts.initiator.kind]
    return _evaluated(merged(WORKFLOW_START, layers, started_by=source), run)


def params_again(definition: str, before: str, given: Definitions, *, run: NewRun) -> dict[str, Evaluated]:
    """The evaluated parameters of an instance that has never run and is restarted with other run parameters."""
    ready = prepared(definition)
    known = {**WORKFLOW_DEFAULTS, **ready.params}
    previous = taken_over(restored(before, known))
    layers = {"previous run": previous, "restart params": given}
    return _evaluated(merged(WORKFLOW_RESTART, layers, is_restart=True), run)


def _evaluated(params: Definitions, run: NewRun) -> dict[str, Evaluated]:
    name = run.facts.name
    host = ParamsHost(run.facts, name)
    context = Context(SEL, now_ms=run.now_ms, seed=name, extension=host, budget=run.budget)
    return evaluate(params, WorkflowScope(run.facts.workflow_id, host), context)


def defaults_for(mentioned: Mentioned) -> dict[str, Definition]:
    """The system defaults that may be asked for, in their order."""
    if mentioned.is_open:
        return dict(WORKFLOW_DEFAULTS)
    wanted = _with_all_below((mentioned.words & WORKFLOW_DEFAULTS.keys()) | ALWAYS)
    return {name: default for name, default in WORKFLOW_DEFAULTS.items() if name in wanted}


def _with_all_below(names: Iterable[str]) -> set[str]:
    mentioned: set[str] = set()
    pending = set(names)
    while pending:
        mentioned |= pending
        pending = {word for name in pending for word in DEFAULTS_BELOW[name]} - mentioned
    return mentioned


def mentioned_in(tree: object) -> Mentioned:
    """The words of all texts of a JSON value. A key is no expression: only its words count."""
    words: set[str] = set()
    is_open = False
    for text, is_key in _texts(tree):
        words.update(_WORD.findall(text))
        is_open = is_open or (not is_key and _hides_names(text))
    return Mentioned(frozenset(words), is_open)


def _hides_names(text: str) -> bool:
    return "params" in text and len(_ASKING.findall(text)) != len(_PLAINLY_ASKING.findall(text))


def _texts(tree: object) -> Iterator[tuple[str, bool]]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            yield node, False
        elif isinstance(node, Mapping):
            yield from ((key, True) for key in node)
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)


def _texts_of(given: Definitions) -> dict[str, list[object]]:
    """The names, expressions and literals of definitions; those inside of maps too."""
    return {name: [definition.expression, _plain(definition.value)] for name, definition in given.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Definition):
        return [value.expression, _plain(value.value)]
    return value


def _words_below(name: str, default: Definition) -> frozenset[str]:
    words = set(_WORD.findall(default.expression or ""))
    return frozenset((words & WORKFLOW_DEFAULTS.keys()) - {name})


DEFAULTS_BELOW: Final[Mapping[str, frozenset[str]]] = {
    name: _words_below(name, default) for name, default in WORKFLOW_DEFAULTS.items()
}
