"""Time zones, as expressions know them."""

from kapelle.processors.sel import SelError
from kapelle.processors.sel.joda.zone import zone_of


def is_zone(name: str) -> bool:
    """Whether there is such a time zone."""
    try:
        zone_of(name)
    except SelError:
        return False
    return True
