"""The memory of a partition: things that have begun and not ended, each with the record that it began with."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Begun(Generic[K, V]):
    """Things in the order of their first records, so that the oldest that is needed is known at once."""

    def __init__(self) -> None:
        self._things: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def begin(self, key: K, offset: int, thing: V) -> None:
        """Remember a thing. One of that name that was there before is forgotten."""
        self._things.pop(key, None)
        self._things[key] = offset, thing

    def get(self, key: K) -> V | None:
        entry = self._things.get(key)
        return None if entry is None else entry[1]

    def end(self, key: K) -> V | None:
        """Forget a thing, and give what it was."""
        entry = self._things.pop(key, None)
        return None if entry is None else entry[1]

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._things))

    def __len__(self) -> int:
        return len(self._things)

    @property
    def since(self) -> int | None:
        """Whoever wants to remember the same has to read from here. None: there is nothing to remember."""
        return next(iter(self._things.values()))[0] if self._things else None
