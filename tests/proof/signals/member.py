"""One process of the proof: the product's processors on Kafka, in a member that can be told where to die."""

import sys
from typing import Any

from kapelle.topology.build import Topology
from kapelle.topology.page import topology
from tests.proof import member


def product(_: str, **options: Any) -> Topology:
    """The product's topology, whichever of the proof's own was asked for."""
    return topology(**options)


if __name__ == "__main__":
    sys.exit(member.main(sys.argv[1:], product))
