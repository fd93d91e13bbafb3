"""A property that is worked out when it is first asked for, and kept.

`functools.cached_property` takes a lock before Python 3.12, which costs more than most of what decisions keep this way.
A decision has one thread.
"""

from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

Owner = TypeVar("Owner")
T = TypeVar("T")


class lazy(Generic[Owner, T]):  # noqa: N801 - it is used as a decorator, as `property` is
    """Decorates a method without arguments. The instance's dictionary hides it from the second time on."""

    def __init__(self, make: Callable[[Owner], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: Owner, owner: type) -> T: ...

    def __get__(self, instance: Owner | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value
