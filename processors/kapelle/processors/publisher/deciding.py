"""The decisions of the publishers: this module imports the modules that have them.

| module | publisher |
|---|---|
| `workflows` | `publisher.workflows` |
| `instances` | `publisher.instances` |
| `steps` | `publisher.steps` |
| `verdicts` | `publisher.signals` |
"""

from kapelle.processors.processor import Processor, S
from kapelle.processors.publisher import instances, steps, verdicts, workflows  # noqa: F401  each registers its decisions
from kapelle.processors.publisher.processor import PUBLISHERS


def _ignore_the_rest(publisher: Processor[S]) -> None:
    """Publish nothing about the events of the inputs that nothing has been decided for."""
    for contract in {contract for stream in publisher.inputs for contract in stream.ours}:
        if contract not in publisher.deciders:
            publisher.ignores(contract)


for _publisher in PUBLISHERS:
    _ignore_the_rest(_publisher)
