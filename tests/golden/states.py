"""Draws `docs/states.md` from the tables of the state machines: `python -m tests.golden.states`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kapelle.processors import instances as of_instances
from kapelle.processors.runs import states as of_steps
from kapelle.schemas.contracts import InstanceStatus, StepStatus

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"
Status = StepStatus | InstanceStatus
Table = Mapping[StepStatus, frozenset[StepStatus]] | Mapping[InstanceStatus | None, frozenset[InstanceStatus]]

HEAD = """# States

Which status may follow which, for steps and for instances. The engine asks the same tables before every change. A
change that they do not allow is a bug: the decision raises, and nothing of it is written. This page is written by
`python -m tests.golden.states`.
"""
STEPS = """
## Steps

The table is `NEXT` in [runs/states.py](../processors/kapelle/processors/runs/states.py). A step that comes back to
`CREATED` gets a new attempt. A restart of the run, and the next iteration of a loop, begin at `NOT_CREATED` again. The
diagram leaves out how an attempt is ended whatever it is about. Every status that is active may also become one of
{ended}.
"""
INSTANCES = """
## Instances

The table is `NEXT` in [instances.py](../processors/kapelle/processors/instances.py). An instance that has
ended gets a new run by a restart.
"""


def page() -> str:
    """The whole page."""
    ended = set.intersection(*(set(of_steps.NEXT[one]) for one in of_steps.ACTIVE))
    listed = ", ".join(f"`{one}`" for one in sorted(ended))
    steps = dict(of_steps.NEXT)
    shown = {one: after - ended if one in of_steps.ACTIVE else after for one, after in steps.items()}
    parts = [HEAD.rstrip("\n"), STEPS.format(ended=listed), diagram(shown), *rows(steps)]
    parts += [INSTANCES, diagram(of_instances.NEXT), *rows(of_instances.NEXT)]
    return "\n".join(parts) + "\n"


def diagram(table: Table) -> str:
    """A Mermaid diagram of a table."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for before, after in table.items():
        lines += [f"    {before or '[*]'} --> {one}" for one in sorted(after)]
    return "\n".join([*lines, "```", ""])


def rows(table: Table) -> Iterator[str]:
    """A table of Markdown, with every transition there is."""
    yield "| status | may become |"
    yield "|---|---|"
    for before, after in table.items():
        name = f"`{before}`" if before is not None else "(none yet)"
        yield f"| {name} | {', '.join(f'`{one}`' for one in sorted(after)) or 'nothing'} |"


if __name__ == "__main__":
    PAGE.write_text(page())
