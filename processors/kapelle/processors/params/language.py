"""The one interpreter of SEL that decisions use, with its bound on work."""

from typing import Final

from kapelle.processors.sel import Limits, Sel

# A decision must not keep a partition waiting: two million visits are about a second.
SEL: Final = Sel(Limits(visits=2_000_000))
