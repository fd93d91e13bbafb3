"""What steps may refer to when there are blocks: a step sees the steps of its own block, and nothing else.

| in a step of a block | leads to |
|---|---|
| `name` | its own parameter, or one of the workflow and of the loops around it, `loop_index` included |
| `step__param` | a step of the same block that comes before it |
| `params.getFromForeach(loop, …)` | a foreach of the same block that comes before it, and a step directly inside that |
| `params.getFromSubworkflow(child, …)` | a subworkflow of the same block that comes before it |

A bare name that nobody defines is not refused: a start may give it. Definitions without blocks and children are left as
they are: what was pushed once must stay right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kapelle.processors.definitions.composites import LOOP_PARAMS, loop_definitions
from kapelle.processors.definitions.fields import STEP_PARAM_SEPARATOR
from kapelle.processors.definitions.graph import nearest
from kapelle.processors.definitions.loop_checks import SCALARS
from kapelle.processors.definitions.mentions import Call, calls_in, expressions_in, names_in
from kapelle.processors.definitions.models import Step, StepKind, Workflow
from kapelle.processors.definitions.places import Placed
from kapelle.processors.definitions.problems import at
from kapelle.processors.definitions.texts import Texts
from kapelle.processors.params import STEP_DEFAULTS, TYPE_DEFAULTS, WORKFLOW_DEFAULTS, Definition, ParamType
from kapelle.processors.sel import SelError

ASKING: Final = "getFrom"


class _Block(msgspec.Struct, frozen=True):
    """The steps of one block, and for each those that lead to it."""

    steps: Mapping[str, Step]
    before: Mapping[str, frozenset[str]]


def check_references(workflow: Workflow, steps: list[Placed], texts: Texts) -> None:
    """Report references that no run could follow."""
    if all(step.kind in (StepKind.STEP, StepKind.TEMPLATE) for step in workflow.steps):
        return
    check = _Check(workflow, steps, texts)
    for place in steps:
        for path, definition in _written(place):
            check.names(place, definition, path)
            check.calls(place, definition, path)
        if place.step.condition is not None:
            check.condition(place, at(place.path, "condition"))


class _Check:
    """Holds the references of each step against the block that the step is in."""

    def __init__(self, workflow: Workflow, steps: list[Placed], texts: Texts) -> None:
        self.workflow = workflow
        self.texts = texts
        self.report = texts.report
        self.loops = {place.step.id: place.around for place in steps}  # the loops around each step
        self.calls_by_text: dict[str, tuple[Call, ...]] = {}
        self.blocks = {"": _block_of(workflow.steps)}
        self.blocks |= {place.step.id: _block_of(place.step.steps) for place in steps if place.step.steps}

    def block(self, place: Placed) -> _Block:
        return self.blocks[place.around[-1].id if place.around else ""]

    def names(self, place: Placed, definition: Definition, path: str) -> None:
        """Check every `step__param`."""
        block = self.block(place)
        for name in dict.fromkeys(names_in(definition, self.texts.sel)):
            meant = [] if self._is_param(name, place) else self._steps_in(name)
            near = [step for step in meant if step in block.steps]
            if meant and not near:
                self.report.add(path, name, self._elsewhere(place, meant[0], name))
            elif (
                near and place.around and not any(step == place.step.id or self._precedes(step, place) for step in near)
            ):
                self.report.add(path, name, f"a step that leads to {place.step.id!r}, which {near[0]!r} does not")

    def calls(self, place: Placed, definition: Definition, path: str) -> None:
        """Check the calls that read other steps. Children return only parameters that are named literally."""
        for text in expressions_in(definition):
            for call in self._calls(text):
                match call:
                    case Call("getFromForeach" | "getFromSubworkflow" as function, args) if None in args:
                        self.report.add(path, function, f"names as literals in {function}: children return these")
                    case Call("getFromForeach", (loop, step, param)):
                        if loop is not None and self._is_before(place, loop, StepKind.FOREACH, path):
                            self._check_inner(self.blocks.get(loop), loop, (step, param), path)
                    case Call("getFromSubworkflow", (child, _, _)) if child is not None:
                        self._is_before(place, child, StepKind.SUBWORKFLOW, path)
                    case Call("getFromStep", (step, _)) if step in self.loops and step not in self.block(place).steps:
                        self.report.add(path, step, self._elsewhere(place, step, ""))

    def condition(self, place: Placed, path: str) -> None:
        """The condition of a while sees values of the loop, of its step and of the workflow, and no other steps."""
        condition = Definition(ParamType.BOOLEAN, expression=place.step.condition)
        params = place.step.params.get(LOOP_PARAMS)
        is_told = params is not None and params.is_literal
        inner = {name for step in place.step.steps for name in step.params} if is_told else set()
        for name in names_in(condition, self.texts.sel):
            if self._is_param(name, place) or name in loop_definitions(place.step):
                continue
            if self._steps_in(name):
                self.report.add(path, name, "no parameters of other steps: a parameter of the loop can take them over")
            elif name in inner:
                expected = f"a parameter that the loop carries on: {name!r} must be in its {LOOP_PARAMS}"
                self.report.add(path, name, expected)
        for call in self._calls(place.step.condition or ""):
            if call.function.startswith(ASKING):
                self.report.add(path, call.function, "no functions that ask for other steps, instances or signals")

    def _calls(self, text: str) -> tuple[Call, ...]:
        """The calls in a text. Each text is parsed once, because it may occur in many places."""
        if ASKING not in text:
            return ()
        if text not in self.calls_by_text:
            try:
                self.texts.sel.program(text)
                self.calls_by_text[text] = tuple(calls_in(text, self.texts.sel.limits))
            except SelError:
                self.calls_by_text[text] = ()  # it is reported as an expression that cannot be compiled
        return self.calls_by_text[text]

    def _is_before(self, place: Placed, name: str, kind: StepKind, path: str) -> bool:
        """Whether it is a step of that kind in the same block that comes first. Otherwise report it."""
        block = self.block(place)
        known = {step.id for step in block.steps.values() if step.kind is kind}
        if name not in known:
            self.report.add(path, name, f"the id of a {kind} of the same block{nearest(name, known)}")
            return False
        # Conditions and signals of a step are evaluated when it is complete, so they may ask for its own children.
        is_own = name == place.step.id and path.startswith((f"{place.path}.transition", f"{place.path}.signal_outputs"))
        if not is_own and not self._precedes(name, place):
            self.report.add(path, name, f"a {kind} that leads to {place.step.id!r}, because it must be complete")
            return False
        return True

    def _check_inner(self, block: _Block | None, loop: str, call: tuple[str | None, str | None], path: str) -> None:
        name, param = call
        if block is None or name is None:
            return
        step = block.steps.get(name)
        if step is None:
            near = nearest(name, set(block.steps))
            self.report.add(path, name, f"the id of a step directly inside {loop!r}{near}")
        elif param is not None and step.sub_type is None:  # a template may have more parameters
            known = {**STEP_DEFAULTS, **TYPE_DEFAULTS.get(step.type.upper(), {}), **step.params}
            if param not in known:
                self.report.add(path, param, f"the name of a parameter of {name!r}{nearest(param, set(known))}")
            elif known[param].type not in SCALARS:
                typed_param = f"{param!r}, which is a {known[param].type}"
                self.report.note(path, typed_param, f"a parameter of {name!r} of type {', '.join(SCALARS)}")

    def _is_param(self, name: str, place: Placed) -> bool:
        """Whether it is written as a parameter that the step can see by this name."""
        if name in self.workflow.params or name in place.step.params or name in WORKFLOW_DEFAULTS:
            return True
        return any(name in loop.params or name in loop_definitions(loop) for loop in place.around)

    def _steps_in(self, name: str) -> list[str]:
        """The steps that `step__param` may mean. An id that ends in an underscore makes the separator longer by one."""
        at_index = name.find(STEP_PARAM_SEPARATOR)
        if at_index < 0:
            return []
        is_longer = name.startswith(STEP_PARAM_SEPARATOR, at_index + 1)
        candidates = (name[:at_index], name[: at_index + 1]) if is_longer else (name[:at_index],)
        return [step for step in candidates if step in self.loops]

    def _precedes(self, step: str, place: Placed) -> bool:
        return step in self.block(place).before[place.step.id]

    def _elsewhere(self, place: Placed, step: str, name: str) -> str:
        """What would be right instead of a step of another block."""
        around = self.loops[step]
        if any(loop.id == step for loop in place.around):
            return f"the name of the parameter alone: {step!r} is a loop around {place.step.id!r}"
        if around[: len(place.around)] == place.around:
            loop = around[len(place.around)]
            hint = f"{step!r} is inside {loop.id!r}"
            if loop.kind is StepKind.FOREACH and around[-1] is loop:
                hint += f", and params.getFromForeach({loop.id!r}, {step!r}, …) gives the values of all iterations"
        else:
            loop = next(
                loop for index, loop in enumerate(place.around) if index == len(around) or loop is not around[index]
            )
            hint = f"{step!r} is outside of {loop.id!r}"
            if name:
                hint += f", and a parameter of {loop.id!r} can take {name} over"
        return f"a step of the same block ({hint})"


def _block_of(steps: tuple[Step, ...]) -> _Block:
    """The block, with all ways through it by Warshall's method. A set of steps is the bits of one integer."""
    place = {step.id: number for number, step in enumerate(steps)}
    reached = [sum(1 << place[name] for name in step.successors if name in place) for step in steps]
    for middle, ways in enumerate(reached):
        for start, reach in enumerate(reached):
            if reach >> middle & 1:
                reached[start] |= ways
    before = {
        step.id: frozenset(other.id for other, reach in zip(steps, reached, strict=True) if reach >> place[step.id] & 1)
        for step in steps
    }
    return _Block({step.id: step for step in steps}, before)


def _written(place: Placed) -> Iterator[tuple[str, Definition]]:
    """All parameters and conditions of a step with their paths; of a map those inside it."""
    step = place.step
    yield from _leaves(step.params, at(place.path, "params"))
    for name, condition in step.successors.items():
        path = at(at(at(place.path, "transition"), "successors"), name)
        yield path, Definition(ParamType.BOOLEAN, expression=condition)
    for index, output in enumerate(step.signal_outputs):
        yield from _leaves(output.params, at(at(at(place.path, "signal_outputs"), index), "params"))
    for index, dependency in enumerate(step.signal_dependencies):
        here = at(at(at(place.path, "signal_dependencies"), index), "match_params")
        yield from ((at(here, name), match.param) for name, match in dependency.match_params.items())


def _leaves(params: Mapping[str, Definition], path: str) -> Iterator[tuple[str, Definition]]:
    for name, definition in params.items():
        here = at(path, name)
        if definition.type is ParamType.MAP and definition.expression is None:
            yield from _leaves(definition.value, at(here, "value"))
        else:
            yield here, definition
