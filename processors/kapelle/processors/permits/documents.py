"""What must be readable in commands to `permits` before they are decided on."""

from kapelle.processors.keys import ids_of
from kapelle.processors.permits.processor import permits
from kapelle.schemas import contracts as c


@permits.reads(c.RequestPermit)
def request_permit(request: c.RequestPermit) -> tuple[str, int]:
    """The instance of the attempt. The answer goes to it, so its key must be one."""
    return ids_of(request.holder.key)
