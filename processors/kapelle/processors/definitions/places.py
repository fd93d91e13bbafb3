"""Where each step was written: its path, and the loops around it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kapelle.processors.definitions.models import Step
from kapelle.processors.definitions.problems import at


class Placed(msgspec.Struct, frozen=True):
    """A step with the place that it was written at, and the loops around it from outside in."""

    step: Step
    path: str
    around: tuple[Step, ...]


def placed(steps: tuple[Step, ...], path: str, around: tuple[Step, ...] = ()) -> Iterator[Placed]:
    """All steps, those of inner blocks included, in the order in which they are written."""
    for index, step in enumerate(steps):
        here = f"{path}[{index}].{step.kind}"
        yield Placed(step, here, around)
        yield from placed(step.steps, at(here, "steps"), (*around, step))
