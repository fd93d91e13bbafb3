"""Looking on while limited steps run: what has ended, what is active and what is paused."""

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.topology.build import Topology
from tests.proof.composites.watching import Watch
from tests.proof.permits.attempts import OVER

Step = tuple[str, str]  # the key of an instance, and a step


class StepWatch(Watch):
    """A reader that also knows which steps are active, which are paused, and how instances ended."""

    def __init__(self, bootstrap_servers: str, topology: Topology) -> None:
        super().__init__(bootstrap_servers, topology)
        self.status: dict[Step, StepStatus] = {}
        self.ended: dict[str, InstanceStatus] = {}

    def active(self, *statuses: StepStatus) -> list[Step]:
        """The steps that are active, or in one of these states."""
        known = list(self.status.items())
        return [step for step, status in known if (status in statuses if statuses else status not in OVER)]

    def left(self) -> str:
        paused, waiting = self.active(StepStatus.PAUSED), self.active(StepStatus.WAITING_FOR_PERMITS)
        return f"{super().left()}; {len(self.active())} steps active, {len(paused)} paused, {len(waiting)} waiting"

    def _see(self, key: str, event: object) -> None:
        super()._see(key, event)
        match event:
            case c.StepChanged():
                self.status[key, event.step_id] = event.statuses[-1]
            case c.RunStarted():
                self.ended.pop(key, None)
            case c.RunEnded():
                self.ended[key] = event.status
