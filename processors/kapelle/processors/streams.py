"""Named, typed, keyed sequences of records. The topology turns each into a topic."""

from enum import StrEnum

import msgspec

from kapelle.processors.keys import KeyForm
from kapelle.processors.messages import Foreign
from kapelle.schemas.contract import Contract

DAY_MS = 24 * 60 * 60 * 1000


class Keep(StrEnum):
    """How long a stream's records stay readable."""

    FOR_EVER = "for ever"  # history: the state of any past moment can be rebuilt from it
    A_WEEK = "a week"  # consumed once; a week is for the operator, not for the processor
    LATEST = "latest per key"  # current state: compacted


class Stream(msgspec.Struct, frozen=True):
    """A stream of records of known types, partitioned by key.

    `partitions` is None for the topology's default; a processor's inputs must agree (they are co-partitioned).
    `public` is for streams that others read: their records are whole CloudEvents. Those between our own processors
    carry an id and the trace; what else a CloudEvent would say, the record says by itself. A record whose key is not of
    the form `key` is a dead letter (see `fitness`).
    """

    name: str
    contracts: tuple[type[Contract] | type[Foreign], ...]
    keep: Keep = Keep.A_WEEK
    partitions: int | None = None
    public: bool = False
    key: KeyForm = KeyForm.ANY

    @property
    def ours(self) -> tuple[type[Contract], ...]:
        """The types that have a schema: all but `Foreign`."""
        return tuple([contract for contract in self.contracts if issubclass(contract, Contract)])

    def __hash__(self) -> int:
        return hash(self.name)
