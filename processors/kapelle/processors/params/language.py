"""The one interpreter of SEL that decisions use, and what one decision may spend on it.

A decision must not keep a partition waiting. A visit takes 0.2 to 0.5 microseconds, so a decision that spends all it
has takes about an eighth of a second at worst.
"""

from typing import Final

from kapelle.processors.sel import Budget, Limits, Sel

VISITS_MAX: Final = 250_000
BYTES_MAX: Final = 32_000_000

SEL_LIMITS: Final = Limits(visits=VISITS_MAX, memory_bytes=BYTES_MAX)
SEL: Final = Sel(SEL_LIMITS)


def new_budget() -> Budget:
    """What a start, a restart, a trigger or an attempt at a step may spend on everything that it evaluates."""
    return Budget(VISITS_MAX, BYTES_MAX)
