"""A module whose worker must be named."""

from tests.unit.cli.workers import other as first
from tests.unit.cli.workers import worker as second

__all__ = ["first", "second"]
