"""Signals and triggers through the client: each call as data, and the same methods for both kinds of clients."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeVar

from kapelle.client import signal_results as r
from kapelle.client.calls import Call, Params, members, read, write
from kapelle.client.results import Page

T = TypeVar("T")

Sequence = int | Literal["latest"]
Direction = Literal["forward", "backward", "both"]


# Calls ----------------------------------------------------------------------------------------------------------------


def _announce(
    name: str,
    params: Params | None,
    *,
    signal_id: str | None,
    happened_at_ms: int | None,
    payload: Mapping[str, object] | None,
) -> Call[r.Announced]:
    body = members(
        name=name,
        params=dict(params) if params else None,
        request_id=signal_id,
        request_time=happened_at_ms,
        payload=dict(payload) if payload else None,
    )
    return write("POST", r.Announced, "signals", body=body)


def _names(prefix: str, limit: int | None, cursor: str | None) -> Call[Page[r.SignalName]]:
    return read(Page[r.SignalName], "signals", prefix=prefix or None, limit=limit, cursor=cursor)


def _of_name(name: str, limit: int | None, cursor: str | None) -> Call[Page[r.SignalRecord]]:
    return read(Page[r.SignalRecord], "signals", name, "instances", limit=limit, cursor=cursor)


def _refused(name: str, signal_id: str | None, limit: int | None, cursor: str | None) -> Call[Page[r.RefusedSignal]]:
    return read(Page[r.RefusedSignal], "signals", name, "refused", signal_id=signal_id, limit=limit, cursor=cursor)


def _one(answer: type[T], name: str, sequence: Sequence, *parts: str, **query: str | int) -> Call[T]:
    return read(answer, "signals", name, "instances", sequence, *parts, **query)


def _instance_lineage(workflow_id: str, instance_id: int, direction: str, depth: int) -> Call[r.Lineage]:
    at = ("workflows", workflow_id, "instances", instance_id, "lineage")
    return read(r.Lineage, *at, direction=direction, depth=depth)


def _triggers(workflow_id: str, *, with_disarmed: bool) -> Call[r.TriggerList]:
    flag = "true" if with_disarmed else None
    return read(r.TriggerList, "workflows", workflow_id, "triggers", with_disarmed=flag)


def _explain_triggers(workflow_id: str) -> Call[r.TriggerExplanation]:
    return read(r.TriggerExplanation, "workflows", workflow_id, "triggers", "explain")


class Sender(Protocol):
    """A client that blocks until the answer."""

    def send(self, call: Call[T]) -> T: ...


class AsyncSender(Protocol):
    """A client that awaits the answer."""

    async def send(self, call: Call[T]) -> T: ...


class Signals:
    """Announcing signals, and reading their effects."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def announce(
        self,
        name: str,
        params: Params | None = None,
        *,
        signal_id: str | None = None,
        happened_at_ms: int | None = None,
        payload: Mapping[str, object] | None = None,
    ) -> r.Announced:
        """Announce a signal. Without an id, announcements with the same name and parameters are the same signal."""
        return self._client.send(
            _announce(name, params, signal_id=signal_id, happened_at_ms=happened_at_ms, payload=payload)
        )

    def names(self, *, prefix: str = "", limit: int | None = None, cursor: str | None = None) -> Page[r.SignalName]:
        """All signal names, with the number of signals and subscriptions of each."""
        return self._client.send(_names(prefix, limit, cursor))

    def list(self, name: str, *, limit: int | None = None, cursor: str | None = None) -> Page[r.SignalRecord]:
        """The signals of a name, latest first."""
        return self._client.send(_of_name(name, limit, cursor))

    def get(self, name: str, sequence: Sequence = "latest") -> r.SignalRecord:
        """One signal."""
        return self._client.send(_one(r.SignalRecord, name, sequence))

    def explain(self, name: str, sequence: Sequence = "latest") -> r.Explanation:
        """The verdict of each trigger and step, with the reason."""
        return self._client.send(_one(r.Explanation, name, sequence, "explain"))

    def lineage(
        self, name: str, sequence: Sequence = "latest", *, direction: Direction = "both", depth: int = 20
    ) -> r.Lineage:
        """The causes and effects of a signal."""
        call = _one(r.Lineage, name, sequence, "lineage", direction=direction, depth=depth)
        return self._client.send(call)

    def instance_lineage(
        self, workflow_id: str, instance_id: int, *, direction: Direction = "both", depth: int = 20
    ) -> r.Lineage:
        """The causes and effects of an instance."""
        return self._client.send(_instance_lineage(workflow_id, instance_id, direction, depth))

    def refused(
        self, name: str, *, signal_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[r.RefusedSignal]:
        """Duplicate and late announcements, latest first."""
        return self._client.send(_refused(name, signal_id, limit, cursor))


class Triggers:
    """Signal triggers of workflows."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def list(self, workflow_id: str, *, with_disarmed: bool = False) -> r.TriggerList:
        """The armed triggers, with the signals that wait for others to join."""
        return self._client.send(_triggers(workflow_id, with_disarmed=with_disarmed))

    def explain(self, workflow_id: str) -> r.TriggerExplanation:
        """Why a workflow did not start: the latest signals, and what is missing."""
        return self._client.send(_explain_triggers(workflow_id))


class AsyncSignals:
    """The same as `Signals`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def announce(
        self,
        name: str,
        params: Params | None = None,
        *,
        signal_id: str | None = None,
        happened_at_ms: int | None = None,
        payload: Mapping[str, object] | None = None,
    ) -> r.Announced:
        """Announce a signal. Without an id, announcements with the same name and parameters are the same signal."""
        return await self._client.send(
            _announce(name, params, signal_id=signal_id, happened_at_ms=happened_at_ms, payload=payload)
        )

    async def names(
        self, *, prefix: str = "", limit: int | None = None, cursor: str | None = None
    ) -> Page[r.SignalName]:
        """All signal names, with the number of signals and subscriptions of each."""
        return await self._client.send(_names(prefix, limit, cursor))

    async def list(self, name: str, *, limit: int | None = None, cursor: str | None = None) -> Page[r.SignalRecord]:
        """The signals of a name, latest first."""
        return await self._client.send(_of_name(name, limit, cursor))

    async def get(self, name: str, sequence: Sequence = "latest") -> r.SignalRecord:
        """One signal."""
        return await self._client.send(_one(r.SignalRecord, name, sequence))

    async def explain(self, name: str, sequence: Sequence = "latest") -> r.Explanation:
        """The verdict of each trigger and step, with the reason."""
        return await self._client.send(_one(r.Explanation, name, sequence, "explain"))

    async def lineage(
        self, name: str, sequence: Sequence = "latest", *, direction: Direction = "both", depth: int = 20
    ) -> r.Lineage:
        """The causes and effects of a signal."""
        call = _one(r.Lineage, name, sequence, "lineage", direction=direction, depth=depth)
        return await self._client.send(call)

    async def instance_lineage(
        self, workflow_id: str, instance_id: int, *, direction: Direction = "both", depth: int = 20
    ) -> r.Lineage:
        """The causes and effects of an instance."""
        return await self._client.send(_instance_lineage(workflow_id, instance_id, direction, depth))

    async def refused(
        self, name: str, *, signal_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[r.RefusedSignal]:
        """Duplicate and late announcements, latest first."""
        return await self._client.send(_refused(name, signal_id, limit, cursor))


class AsyncTriggers:
    """The same as `Triggers`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def list(self, workflow_id: str, *, with_disarmed: bool = False) -> r.TriggerList:
        """The armed triggers, with the signals that wait for others to join."""
        return await self._client.send(_triggers(workflow_id, with_disarmed=with_disarmed))

    async def explain(self, workflow_id: str) -> r.TriggerExplanation:
        """Why a workflow did not start: the latest signals, and what is missing."""
        return await self._client.send(_explain_triggers(workflow_id))
