"""What must hold between the parts of a definition, once each of them has been read."""

from __future__ import annotations

from kapelle.processors.definitions.composites import LOOPS
from kapelle.processors.definitions.dry_run import DryRun
from kapelle.processors.definitions.graph import check_successors, checked_graph
from kapelle.processors.definitions.limits import NESTING_MAX, STEPS_MAX
from kapelle.processors.definitions.loop_checks import check_loops, check_subworkflows
from kapelle.processors.definitions.models import Step, StepKind, Workflow
from kapelle.processors.definitions.numbers import check_step_numbers, check_timeout
from kapelle.processors.definitions.places import Placed, placed
from kapelle.processors.definitions.problems import Report, at
from kapelle.processors.definitions.reading import Reader
from kapelle.processors.definitions.references import check_references
from kapelle.processors.definitions.texts import Texts
from kapelle.processors.definitions.time_triggers import check_time_triggers
from kapelle.processors.definitions.triggers import check_signal_triggers, check_step_signals


def check(workflow: Workflow, reader: Reader, path: str = "workflow") -> None:
    """Report everything that is wrong with what was read."""
    report = reader.report
    steps = list(placed(workflow.steps, at(path, "steps")))
    _check_counts(steps, at(path, "steps"), report)
    if reader.is_whole and len(steps) <= STEPS_MAX:
        _check_ids(steps, report)
        _check_blocks(workflow.steps, at(path, "steps"), report)
        _check_claims(steps, reader)
    texts = Texts(report)
    _check_texts(workflow, steps, path=path, texts=texts)
    check_signal_triggers(workflow, path, texts=texts, report=report)
    for stray in reader.strays:
        report.add(*stray)
    check_time_triggers(workflow.time_triggers, at(path, "time_triggers"), report)
    run = DryRun(workflow, at(path, "params"), texts=texts, reader=reader)
    check_loops(steps, run)
    check_subworkflows(steps, report)
    if reader.is_whole and len({place.step.id for place in steps}) == len(steps) <= STEPS_MAX:
        check_references(workflow, steps, texts)
    check_timeout(workflow.timeout, at(path, "timeout"), known=run.known(()), report=report)
    for place in steps:
        run.check_step(place.step, place.path)
        check_step_numbers(place.step, place.path, known=run.known(place.around), report=report)
        check_step_signals(place.step, place.path, report=report)


def check_kinds(steps: tuple[Step, ...], kinds: frozenset[StepKind], path: str, report: Report) -> None:
    """Report the steps whose kind is not among these; of a block only its outermost step."""
    for number, step in enumerate(steps):
        here = at(path, number)
        if step.kind in kinds:
            check_kinds(step.steps, kinds, f"{here}.{step.kind}.steps", report)
        else:
            known = ", ".join(repr(str(kind)) for kind in StepKind if kind in kinds)
            report.note(here, f"{str(step.kind)!r}, which cannot be run", known)


def _check_counts(steps: list[Placed], path: str, report: Report) -> None:
    is_read = not report.has(path) and not report.has(path.rpartition(".")[0])
    if is_read and not 1 <= len(steps) <= STEPS_MAX:
        report.note(path, f"{len(steps)}", f"from 1 to {STEPS_MAX} steps, including steps of inner blocks")
    for place in steps:
        if len(place.around) == NESTING_MAX:
            report.note(place.path, f"a step {NESTING_MAX + 1} deep", f"blocks that nest at most {NESTING_MAX} deep")
        if place.step.kind in LOOPS and not place.step.steps and not report.has(at(place.path, "steps")):
            report.note(at(place.path, "steps"), "no steps", "at least one step")


def _check_ids(steps: list[Placed], report: Report) -> None:
    first: dict[str, str] = {}
    for place in steps:
        before = first.setdefault(place.step.id, place.path)
        if before != place.path:
            report.add(at(place.path, "id"), place.step.id, f"an id that no other step has, and {before} has this one")


def _check_blocks(steps: tuple[Step, ...], path: str, report: Report) -> None:
    """Look at the graph of each block whose successors all exist."""
    own_report = Report()
    check_successors(steps, path, own_report)
    if not own_report.problems and len({step.id for step in steps}) == len(steps):
        checked_graph(steps, path, own_report)
    for problem in own_report.problems:
        report.note(problem.path, problem.value, problem.expected)
    for index, step in enumerate(steps):
        _check_blocks(step.steps, f"{path}[{index}].{step.kind}.steps", report)


def _check_claims(steps: list[Placed], reader: Reader) -> None:
    """Predecessors may be written, and are then what the successors of the others say."""
    before: dict[str, list[str]] = {place.step.id: [] for place in steps}
    for place in steps:
        for name in place.step.successors:
            before.get(name, []).append(place.step.id)
    for path, step_id, claimed in reader.claims:
        computed = before[step_id]
        if sorted(claimed) != sorted(computed):
            names = ", ".join(repr(name) for name in computed) or "none"
            reader.report.add(
                path, claimed, f"what follows from the successors of the others ({names}), or no such key"
            )


def _check_texts(workflow: Workflow, steps: list[Placed], *, path: str, texts: Texts) -> None:
    """Compile everything that is written in SEL."""
    texts.params(workflow.params, at(path, "params"))
    for place in steps:
        texts.params(place.step.params, at(place.path, "params"))
        for name, condition in place.step.successors.items():
            texts.condition(condition, at(at(at(place.path, "transition"), "successors"), name))
        if place.step.condition is not None:
            texts.condition(place.step.condition, at(place.path, "condition"))
        for index, dependency in enumerate(place.step.signal_dependencies):
            here = at(at(at(place.path, "signal_dependencies"), index), "match_params")
            for name, match in dependency.match_params.items():
                texts.params({"param": match.param}, at(here, name))
        for index, output in enumerate(place.step.signal_outputs):
            texts.params(output.params, at(at(at(place.path, "signal_outputs"), index), "params"))
