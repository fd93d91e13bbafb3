"""Trees of instances for people: below a composite step its children, and below them the steps that failed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.text import Text

from kapelle.cli.text import output
from kapelle.cli.text.children import counts_text, progress_text
from kapelle.cli.text.tables import STYLES, first_line
from kapelle.cli.text.timelines import in_iteration

if TYPE_CHECKING:
    from kapelle.cli.trees import Branch, Child
    from kapelle.client import StepRecord

INDENT: Final = "  "
REASON_CHARS_MAX: Final = 200
UNSUCCESSFUL: Final = ("FAILED", "TIMED_OUT", "STOPPED")
# A person may restart a step that is in one of these.
RESTARTED: Final = ("FATALLY_FAILED", "INTERNALLY_FAILED", "TIMED_OUT", "STOPPED")


def branch_lines(at: tuple[str, int], branch: "Branch", indent: str = INDENT) -> Iterator[Text]:
    """What is below a composite step of an instance, one line for each thing."""
    yield Text(f"{indent}{progress_text(branch.step)}")
    for child in branch.children:
        yield from _child_lines(child, indent)
    if branch.others and branch.children:
        more = Text(f"{indent}… and {branch.others} more{counts_text(branch.other_statuses)}", "dim")
        if wanted := [status for status in UNSUCCESSFUL if branch.other_statuses[status]]:
            more.append(f"; to list them: {_listing(at, branch.step.step_id, wanted)}")
        yield more


def _listing(at: tuple[str, int], step_id: str, statuses: list[str]) -> str:
    words = [word for status in statuses for word in ("--status", status)]
    return output.command("run", "list", "--parent", f"{at[0]}/{at[1]}", "--step", step_id, *words)


def _child_lines(child: "Child", indent: str) -> Iterator[Text]:
    record, below = child.record, indent + INDENT
    what = f"{record.workflow_id}/{record.workflow_instance_id}  run {record.workflow_run_id}"
    # The steps below tell why.
    yield _line(indent, what, record.status, None if child.steps else record.reason)
    for step in child.steps or ():
        yield from _step_lines(child, step, below)
    if child.steps and child.other_steps:
        counts = counts_text(child.other_steps)
        yield Text(f"{below}… and {output.counted(child.other_steps.total(), 'more step')}{counts}", "dim")
    if child.has_more:
        yield Text(f"{below}to see its steps: {output.command('run', 'describe', *child.at)}", "dim")


def _step_lines(child: "Child", step: "StepRecord", indent: str) -> Iterator[Text]:
    branch = child.below.get(step.step_id)
    what = f"{in_iteration(step.step_id, step.iteration)}  run {step.workflow_run_id}  attempt {step.step_attempt_id}"
    yield _line(indent, what, step.status, step.reason or step.message)
    if branch is not None:
        yield from branch_lines(child.at, branch, indent + INDENT)
    elif step.status in RESTARTED:
        yield Text(
            f"{indent}{INDENT}to restart it: {output.command('step', 'restart', *child.at, step.step_id)}", "dim"
        )


def _line(indent: str, what: str, status: str, reason: str | None) -> Text:
    line = Text.assemble(f"{indent}{what}  ", (status, STYLES.get(status, "")))
    if reason:
        first = first_line(reason)
        line.append(f"  {first if len(first) <= REASON_CHARS_MAX else f'{first[:REASON_CHARS_MAX]}…'}")
    return line
