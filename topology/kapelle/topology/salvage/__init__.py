"""Going on with a damaged log: what can be read is kept, and what was given up is told."""

from kapelle.topology.salvage.readable import Salvaged, salvage

__all__ = ["Salvaged", "salvage"]
