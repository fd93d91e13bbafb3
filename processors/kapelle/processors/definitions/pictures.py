"""A definition as a picture, in the language of Mermaid: steps are nodes, loops are boxes around their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kapelle.processors.definitions.composites import LOOPS, SUBWORKFLOW_ID, loop_definitions
from kapelle.processors.definitions.models import Step, StepKind, Workflow
from kapelle.processors.definitions.places import placed

INDENT: Final = "  "
LABEL_CHARS_MAX: Final = 60
# Signs that end a label or begin an entity in Mermaid, or markup where a browser shows it.
ESCAPES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}


def picture_of(workflow: Workflow) -> str:
    """The text of the picture. The same definition always gives the same text."""
    # Ids of steps may be words of Mermaid, such as `end`, so nodes get numbers.
    names = {place.step.id: f"s{number}" for number, place in enumerate(placed(workflow.steps, ""))}
    return "\n".join(["flowchart TD", *_block(workflow.steps, names, INDENT)]) + "\n"


def _block(steps: tuple[Step, ...], names: Mapping[str, str], indent: str) -> Iterator[str]:
    for step in steps:
        yield from _node(step, names, indent)
    for step in steps:
        for following, condition in step.successors.items():
            arrow = "-->" if condition.strip() == "true" else f"-- {_quoted(condition)} -->"
            yield f"{indent}{names[step.id]} {arrow} {names[following]}"


def _node(step: Step, names: Mapping[str, str], indent: str) -> Iterator[str]:
    name, label = names[step.id], _quoted(_label(step))
    if step.kind in LOOPS:
        yield f"{indent}subgraph {name}[{label}]"
        yield from _block(step.steps, names, indent + INDENT)
        yield f"{indent}end"
    elif step.kind is StepKind.SUBWORKFLOW:
        yield f"{indent}{name}[[{label}]]"
    else:
        yield f"{indent}{name}[{label}]"


def _label(step: Step) -> str:
    match step.kind:
        case StepKind.FOREACH:
            return f"{step.id}: for each {', '.join(loop_definitions(step))}"
        case StepKind.WHILE:
            return f"{step.id}: while {step.condition}"
        case StepKind.SUBWORKFLOW:
            child = step.params.get(SUBWORKFLOW_ID)
            return f"{step.id}: runs {child.expression or child.value}" if child is not None else step.id
        case StepKind.STEP | StepKind.TEMPLATE:
            return step.id


def _quoted(text: str) -> str:
    """A label in quotation marks, on one line and not too long."""
    line = " ".join(text.split())
    short = line if len(line) <= LABEL_CHARS_MAX else f"{line[: LABEL_CHARS_MAX - 1]}…"
    return '"' + "".join(ESCAPES.get(sign, sign) for sign in short) + '"'
