"""Kapelle's public topics for a Faust application.

    app = faust.App("reports", broker="kafka://127.0.0.1:9092")
    kapelle = Kapelle(app)

    @app.agent(kapelle.instance_changes)
    async def watch(changes):
        async for change in changes:
            await kapelle.announce("seen", id=f"{change.workflow_id}/{change.sequence}")

The values of streams are contracts (`kapelle.schemas.contracts`), keys are texts. Faust delivers each record at least
once. A workflow and a sequence number name a change for ever; with an id that is made of them, announcing twice is
announcing once.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kapelle.faust.codec import PublicCodec, faust_codec
from kapelle.faust.signals import signal
from kapelle.faust.transport import committed_transport

if TYPE_CHECKING:
    from faust.types import AppT, TopicT

TOPICS: Final = {
    "workflow_changes": "public.workflows.changes",
    "workflow_state": "public.workflows.state",
    "instance_changes": "public.instances.changes",
    "instance_state": "public.instances.state",
    "step_changes": "public.steps.changes",
    "step_state": "public.steps.state",
    "signal_verdicts": "public.signals.verdicts",
    "signals": "signals",
}


class Kapelle:
    """The public topics of one deployment. `registry` is the schema registry of its public topics, if any."""

    def __init__(self, app: "AppT", *, prefix: str = "kapelle", registry: str | None = None) -> None:
        self._app = app
        self._prefix = prefix
        self._codec = faust_codec(PublicCodec(registry))
        app.transport = committed_transport(app)

    @cached_property
    def workflow_changes(self) -> "TopicT":
        """Values are `WorkflowChange`, keys workflows."""
        return self._topic("workflow_changes")

    @cached_property
    def workflow_state(self) -> "TopicT":
        """Values are `WorkflowChange`, keys workflows: the latest change of each."""
        return self._topic("workflow_state")

    @cached_property
    def instance_changes(self) -> "TopicT":
        """Values are `InstanceStatusChange`, keys workflows."""
        return self._topic("instance_changes")

    @cached_property
    def instance_state(self) -> "TopicT":
        """Values are `InstanceStatusChange`, keys instances: the latest change of each."""
        return self._topic("instance_state")

    @cached_property
    def step_changes(self) -> "TopicT":
        """Values are `StepStatusChange`, keys instances."""
        return self._topic("step_changes")

    @cached_property
    def step_state(self) -> "TopicT":
        """Values are `StepStatusChange`, keys steps: the latest change of each."""
        return self._topic("step_state")

    @cached_property
    def signal_verdicts(self) -> "TopicT":
        """Values are `SignalVerdict`, keys signal names and triggers."""
        return self._topic("signal_verdicts")

    @cached_property
    def signals(self) -> "TopicT":
        """Where signals are announced. To write to: others may have written in other forms than Avro."""
        return self._topic("signals")

    async def announce(
        self,
        name: str,
        params: Mapping[str, str | int] | None = None,
        *,
        id: str = "",  # noqa: A002 - the word that users know it by
        payload: Mapping[str, object] | None = None,
        happened_at_ms: int | None = None,
    ) -> None:
        """Announce a signal, and wait for the broker. Without an id, the id is derived from its name and parameters."""
        announcement = signal(name, params or {}, id=id, payload=payload or {}, happened_at_ms=happened_at_ms)
        acknowledged = await self.signals.send(key=name, value=announcement)
        await acknowledged

    def _topic(self, name: str) -> "TopicT":
        return self._app.topic(
            f"{self._prefix}.{TOPICS[name]}", key_type=str, key_serializer="raw", value_serializer=self._codec
        )
