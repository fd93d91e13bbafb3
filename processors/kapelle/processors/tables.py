"""How a processor declares its tables, and what it can do with them.

    class Counting(Tables):
        counts = table("counts", key=tuple[str], row=Count)

    state.counts.get(("apple",))          # Count | None

Keys are tuples of strings, integers and bytes, kept in the order of the tuples. Rows are frozen `msgspec.Struct`s.
`decide` is handed tables that refuse to be written; `apply` is handed tables that can be.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar, overload

import msgspec

Key = tuple[str | int | bytes, ...]
K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)


class Unknown(Enum):
    """Stands for a row that was not read yet. `None` stands for one that does not exist."""

    UNKNOWN = 0


UNKNOWN: Final = Unknown.UNKNOWN


class Table(Protocol[K, R]):
    """An ordered table. A bound of a range may be shorter than a key: it then stands before all keys that begin so.

    A scan sees the table as it was when the scan began, so an `apply` may change the rows that it walks over.
    """

    def get(self, key: K, /) -> R | None: ...

    def put(self, key: K, row: R, /) -> None: ...

    def delete(self, key: K, /) -> None: ...

    def range(self, start: Key, end: Key, /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        """The rows from `start` (included) to `end` (excluded)."""
        ...

    def prefix(self, prefix: Key = (), /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        """The rows whose keys begin with `prefix`."""
        ...

    def first(self, prefix: Key = (), /) -> tuple[K, R] | None: ...

    def drop_before(self, bucket: int, /) -> None:
        """Forget every row whose key begins with an integer below `bucket`. Only for tables declared `bucketed`.

        It costs the same for one row and for a million: the rows are gone to every reader at once, and the runtime
        sweeps them away later, by range. What is put below the bucket from then on is ignored.
        """
        ...


class Timers(Protocol):
    """The timers of one partition, kept like rows: only `apply` sets and cancels them, so history rebuilds them."""

    def set(self, key: str, name: str, due_at_ms: int, /) -> None:
        """Arm the timer `name` of `key`, moving it if it was armed."""
        ...

    def cancel(self, key: str, name: str, /) -> None: ...

    def due_at_ms(self, key: str, name: str, /) -> int | None: ...

    def ahead_ms(self) -> int:
        """How far the time of the partition is ahead of the wall clock: 0, unless a clock was wrong."""
        ...


class TableSpec(Generic[K, R]):
    """The declaration of one table. `upgrades` maps an older row version to its type and the way to the next."""

    def __init__(self, name: str, *, key: type[K], row: type[R], form: "RowForm", bucketed: bool) -> None:
        self.name = name
        self.key = key
        self.row = row
        self.version = form.version
        self.upgrades = form.upgrades
        self.bucketed = bucketed
        self.attribute = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: "Tables", owner: type) -> Table[K, R]: ...

    def __get__(self, instance: "Tables | None", owner: type) -> Self | Table[K, R]:
        if instance is None:
            return self
        # Binding puts the opened table into the instance's dictionary, which hides this descriptor.
        opens = instance.opens
        if opens is not None:
            opened: Table[K, R] = opens(self)
            instance.__dict__[self.attribute] = opened
            return opened
        raise AttributeError(f"table {self.name!r} of {owner.__name__} is declared but not bound to a partition")


class RowForm(msgspec.Struct, frozen=True):
    """The version of a row's layout, and how to read the older ones."""

    version: int = 1
    upgrades: Mapping[int, tuple[type[msgspec.Struct], Callable[[Any], Any]]] = {}


# Of whatever keys and rows: the tables of a class differ.
AnySpec = TableSpec[Any, Any]


class Opens(Protocol):
    """Opens a declared table of a partition."""

    def __call__(self, spec: TableSpec[K, R], /) -> Table[K, R]: ...


def table(
    name: str, *, key: type[K], row: type[R], form: RowForm | None = None, bucketed: bool = False
) -> TableSpec[K, R]:
    """Declare a table as an attribute of a `Tables` class."""
    return TableSpec(name, key=key, row=row, form=form or RowForm(), bucketed=bucketed)


class Tables:
    """The base of a processor's state: every partition has its own tables and timers."""

    timers: Timers
    opens: Opens | None = None  # a table that is not bound yet
    _declared: ClassVar[tuple[AnySpec, ...]]  # of this class alone: found once, asked for by every shard

    @classmethod
    def specs(cls) -> tuple[AnySpec, ...]:
        """The declared tables, in the order of declaration, base classes first."""
        if "_declared" not in cls.__dict__:
            specs: dict[str, AnySpec] = {}
            for owner in reversed(cls.__mro__):
                specs.update({k: v for k, v in vars(owner).items() if isinstance(v, TableSpec)})
            cls._declared = tuple(specs.values())
        return cls._declared

    @classmethod
    def bind(cls, open_table: Opens, timers: Timers) -> Self:
        """An instance whose attributes are opened tables."""
        bound = cls()
        bound.timers = timers
        vars(bound).update({spec.attribute: open_table(spec) for spec in cls.specs()})
        return bound

    @classmethod
    def bind_lazily(cls, open_table: Opens, timers: Timers) -> Self:
        """The same, but each table is opened when it is first asked for."""
        bound = cls()
        bound.timers = timers
        bound.opens = open_table
        return bound
