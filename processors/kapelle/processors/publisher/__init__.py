"""Publishers: turn internal events into public records. Each public topic of changes is the history of one publisher.

    workflows.events ─▶ publisher.workflows ─▶ public.workflows.changes, public.workflows.state
                     └▶ publisher.instances ─▶ public.instances.changes, public.instances.state
                         ▲ publisher.internal
    runs.events ──────▶ publisher.steps ─────▶ public.steps.changes,     public.steps.state
    signals.events ───▶ publisher.signals ───▶ public.signals.verdicts
    triggers.events ──┘

Iterations and rounds have no events of a workflow. `publisher.steps` tells `publisher.instances` of their starts and
ends, by the key of their workflow.

The law: each key of a public topic of changes numbers its records 1, 2, 3 …, without a gap and without a repetition.
"""

from kapelle.processors.publisher import applying, deciding, documents  # noqa: F401  register what is applied and decided
from kapelle.processors.publisher.processor import PUBLISHERS

__all__ = ["PUBLISHERS"]
