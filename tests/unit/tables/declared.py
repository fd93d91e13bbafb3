"""Tables and shards that the tests of tables share."""

from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.processors.tables import Tables, table
from kapelle.schemas import Contract
from kapelle.topology.tables import Batch, ShardMeta, ShardState, Store


class Note(Contract, frozen=True):
    text: str


class Shop(Tables):
    stock = table("stock", key=tuple[str], row=Note)
    queue = table("queue", key=tuple[str, int], row=Note)
    seen = table("seen", key=tuple[int, str], row=Note, bucketed=True)
    blobs = table("blobs", key=tuple[bytes], row=Note)


SHOP = Processor("shop", tables=Shop, inputs=[], events=Stream("shop-events", (Note,)))

META = ShardMeta(changelog_offset=7, saved_at_ms=1_000, changelog_id="abc", positions={"orders": 42})


def shard(store: Store, partition: int = 0) -> ShardState[Shop]:
    return ShardState(SHOP, partition, store)


def commit(state: ShardState[Shop], store: Store, meta: ShardMeta = META) -> None:
    """What a runtime does when the transaction is through."""
    batch = Batch()
    state.stage(batch, meta)
    store.write(batch)
    state.clear()
