"""Letting strictly sequential workflows go on past what has failed on purpose."""

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from tests.proof.engine.workload import AUTHOR
from tests.proof.workload import Published


def unblock(workflow_id: str, instance_id: int) -> Published:
    """The request. It may be published twice: it is known by its id."""
    request_id = f"unblock-{workflow_id}-{instance_id}"
    return WORKFLOW_COMMANDS.name, workflow_id, c.UnblockInstances(request_id, AUTHOR, "failed on purpose", instance_id)
