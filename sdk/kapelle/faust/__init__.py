"""Faust applications that subscribe to what Kapelle publishes, and announce signals: the extra `kapelle[faust]`."""

from kapelle.faust.errors import BadSignal, FaustError, FaustMissing, FaustUnfit
from kapelle.faust.subscription import Kapelle

__all__ = ["BadSignal", "FaustError", "FaustMissing", "FaustUnfit", "Kapelle"]
