"""The page that names the product's processors. What is not listed here does not run.

To add a processor: write it as a module of `kapelle.processors`, import it here and put it into `PROCESSORS`. Its
streams need no list of their own: they are found from the processors. `kapelle topology` then shows it with all that
follows from it (topics, group, changelog), and `kapelle topics plan` what Kafka lacks for it.
"""

from typing import Final

from kapelle.processors.intake import intake
from kapelle.processors.permits import permits
from kapelle.processors.publisher import PUBLISHERS
from kapelle.processors.runs import runs
from kapelle.processors.signals import signals
from kapelle.processors.triggers import triggers
from kapelle.processors.workflows import workflows
from kapelle.topology.build import PARTITIONS, AnyProcessor, Topology

PROCESSORS: Final[tuple[AnyProcessor, ...]] = (intake, signals, triggers, workflows, runs, permits, *PUBLISHERS)


def topology(prefix: str = "kapelle", partitions: int = PARTITIONS) -> Topology:
    """The product's topology. `prefix` begins the names of its topics and groups; `partitions` is for each stream."""
    return Topology(PROCESSORS, prefix=prefix, partitions=partitions)
