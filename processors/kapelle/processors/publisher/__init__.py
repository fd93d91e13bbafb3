"""Publishers: what happens inside, made into records for others. Each public topic of changes is one's history.

    workflows.events ─▶ publisher.workflows ─▶ public.workflows.changes, public.workflows.state
                     └▶ publisher.instances ─▶ public.instances.changes, public.instances.state
    runs.events ──────▶ publisher.steps ─────▶ public.steps.changes,     public.steps.state
    signals.events ───▶ publisher.signals ───▶ public.signals.verdicts
    triggers.events ──┘

The law: each key of a public topic of changes numbers its records 1, 2, 3 …, without a gap and without a repetition.
"""

from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.publisher.instances import instances
from kapelle.processors.publisher.sources import ignore_the_rest
from kapelle.processors.publisher.steps import steps
from kapelle.processors.publisher.verdicts import verdicts
from kapelle.processors.publisher.workflows import workflows

PUBLISHERS: Final[tuple[Processor[Any], ...]] = (workflows, instances, steps, verdicts)

for _publisher in PUBLISHERS:
    ignore_the_rest(_publisher)
    _publisher.is_patient = True

__all__ = ["PUBLISHERS"]
