"""Permits through the client: each call as data, and the same methods for both kinds of clients."""

from collections.abc import Mapping
from typing import Literal

from kapelle.client.calls import Call, read, remove, write
from kapelle.client.gate_results import LimitChange, LimitRecord, PermitHolder, PermitWaiter
from kapelle.client.results import Page
from kapelle.client.signals import AsyncSender, Sender

Kind = Literal["tag", "workflow", "tree"]

# Calls ----------------------------------------------------------------------------------------------------------------


def _set(tag: str, most: int, extra: Mapping[str, object] | None, key: str | None) -> Call[LimitChange]:
    body = {**(extra or {}), "tag": tag, "max_allowed": most}
    return write("POST", LimitChange, "tag-permits", body=body, key=key)


def _remove(tag: str, key: str | None) -> Call[LimitChange]:
    return remove(LimitChange, "tag-permits", tag, key=key)


def _list(kind: str | None, prefix: str, limit: int | None, cursor: str | None) -> Call[Page[LimitRecord]]:
    return read(Page[LimitRecord], "permits", kind=kind, prefix=prefix or None, limit=limit, cursor=cursor)


def _get(name: str, kind: str) -> Call[LimitRecord]:
    # Below this path nothing else is: a tag may end as a route does.
    return read(LimitRecord, "tag-permits", name) if kind == "tag" else read(LimitRecord, "permits", kind, name)


def _holders(name: str, kind: str, limit: int | None, cursor: str | None) -> Call[Page[PermitHolder]]:
    return read(Page[PermitHolder], "permits", kind, name, "holders", limit=limit, cursor=cursor)


def _waiting(name: str, kind: str, limit: int | None, cursor: str | None) -> Call[Page[PermitWaiter]]:
    return read(Page[PermitWaiter], "permits", kind, name, "waiting", limit=limit, cursor=cursor)


class Permits:
    """Limits of tags, workflows and trees, their holders and their queues."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def set(
        self, tag: str, max_allowed: int, *, extra: Mapping[str, object] | None = None, request_id: str | None = None
    ) -> LimitChange:
        """Limit how many steps with a tag run at the same time. `extra` is kept, and shown with the limit."""
        return self._client.send(_set(tag, max_allowed, extra, request_id))

    def remove(self, tag: str, *, request_id: str | None = None) -> LimitChange:
        """Limit a tag no longer. Every attempt that waits for it is admitted."""
        return self._client.send(_remove(tag, request_id))

    def list(
        self, kind: Kind | None = None, *, prefix: str = "", limit: int | None = None, cursor: str | None = None
    ) -> Page[LimitRecord]:
        """Limits of one kind or of all. A prefix of names needs a kind."""
        return self._client.send(_list(kind, prefix, limit, cursor))

    def get(self, name: str, kind: Kind = "tag") -> LimitRecord:
        """The limit of a tag, a workflow, or a tree by its root (`etl/12`), with its last changes."""
        return self._client.send(_get(name, kind))

    def holders(
        self, name: str, kind: Kind = "tag", *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PermitHolder]:
        """The attempts that hold a permit, in the order in which they asked for it."""
        return self._client.send(_holders(name, kind, limit, cursor))

    def waiting(
        self, name: str, kind: Kind = "tag", *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PermitWaiter]:
        """The attempts that wait for a permit, in the order of the queue."""
        return self._client.send(_waiting(name, kind, limit, cursor))


class AsyncPermits:
    """The same as `Permits`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def set(
        self, tag: str, max_allowed: int, *, extra: Mapping[str, object] | None = None, request_id: str | None = None
    ) -> LimitChange:
        """Limit how many steps with a tag run at the same time. `extra` is kept, and shown with the limit."""
        return await self._client.send(_set(tag, max_allowed, extra, request_id))

    async def remove(self, tag: str, *, request_id: str | None = None) -> LimitChange:
        """Limit a tag no longer. Every attempt that waits for it is admitted."""
        return await self._client.send(_remove(tag, request_id))

    async def list(
        self, kind: Kind | None = None, *, prefix: str = "", limit: int | None = None, cursor: str | None = None
    ) -> Page[LimitRecord]:
        """Limits of one kind or of all. A prefix of names needs a kind."""
        return await self._client.send(_list(kind, prefix, limit, cursor))

    async def get(self, name: str, kind: Kind = "tag") -> LimitRecord:
        """The limit of a tag, a workflow, or a tree by its root (`etl/12`), with its last changes."""
        return await self._client.send(_get(name, kind))

    async def holders(
        self, name: str, kind: Kind = "tag", *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PermitHolder]:
        """The attempts that hold a permit, in the order in which they asked for it."""
        return await self._client.send(_holders(name, kind, limit, cursor))

    async def waiting(
        self, name: str, kind: Kind = "tag", *, limit: int | None = None, cursor: str | None = None
    ) -> Page[PermitWaiter]:
        """The attempts that wait for a permit, in the order of the queue."""
        return await self._client.send(_waiting(name, kind, limit, cursor))
