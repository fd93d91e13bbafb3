"""Same-cycle delivery: which commands may skip their topic.

A command to a partition that this process owns can be folded in the same cycle and the same transaction, without a
trip through the log. The law: commands from one key to another are never reordered, lost or doubled. A direct delivery
would break it by overtaking a command that still stands in the target's topic. So it is allowed only when

1. the target has been read up to its *barrier*: the end that its topic had after this process acquired the target and
   every source partition that it holds (earlier owners' commands stand before that end), and
2. everything that this process itself sent to the target by topic has been read back.

Whenever a partition is acquired, all barriers are drawn anew (`draw`). Whenever a command goes by topic to a target
that we own, rule 2 is broken (`sent`), and under constant load it would stay so: there is always one command on its
way, and what it sets off follows it. So the member *settles*: it draws the barrier again and folds nothing until it has
read the topics up to there. Settling is bounded in time, and a target that lags far behind is left to catch up by topic
first.

What was read from before a barrier is folded before the first direct delivery of a cycle (`Member._fold_all`). What
stands behind the barrier may be overtaken: it comes from clients and from keys of other processes, never from a key
that this process could be delivering for.
"""

from collections.abc import Callable, Iterable, Sequence

from kapelle.topology.build import Topology
from kapelle.topology.log import Place
from kapelle.topology.settings import Limits
from kapelle.topology.shard import Input, Shard

Ends = Callable[[Sequence[Place]], dict[Place, int]]


class Delivery:
    """Decides, command by command, between the cycle and the topic."""

    def __init__(self, topology: Topology, limits: Limits, *, enabled: bool) -> None:
        self.enabled = enabled
        self._limits = limits
        self._topics = {topology.topic(topology.streams[s]): reader for s, reader in topology.commands().items()}
        self._targets: dict[Place, tuple[Shard, Input]] = {}
        self._settling_since_ms: int | None = None
        self._not_before_ms = 0

    def is_command(self, topic: str) -> bool:
        return topic in self._topics

    def owned(self, shards: Iterable[Shard]) -> None:
        """These shards are ours now, and no others."""
        self._targets = {
            i.place: (shard, i) for shard in shards for i in shard.inputs.values() if i.place.topic in self._topics
        }

    def target(self, place: Place) -> Shard | None:
        """The shard to hand the command to, or None: the topic then takes it."""
        owner = self._targets.get(place)
        if owner is None:
            return None
        shard, target = owner
        if self.enabled and shard.active and target.settled:
            return shard
        target.sent = True
        return None

    def overflowed(self, place: Place) -> None:
        """A command meant for direct delivery takes the topic after all, because the cycle is full."""
        self._targets[place][1].sent = True

    def draw(self, ends: Ends) -> None:
        """Draw every barrier at the present ends. Call it after the offsets of new partitions are known to be final."""
        self._draw([target for _, target in self._targets.values()], ends)

    def hold(self, now_ms: int, ends: Ends) -> bool:
        """Whether nothing may be folded, so that the commands between our processors can settle."""
        unsettled = [i for i in self._inputs() if not i.settled] if self.enabled else []
        if not unsettled:
            self._settling_since_ms = None
            return False
        near = self._limits.settle_records_max
        if now_ms < self._not_before_ms or any(i.barrier - max(i.reached, i.next) > near for i in unsettled):
            return False
        if self._settling_since_ms is None:
            self._settling_since_ms = now_ms
        elif now_ms - self._settling_since_ms > self._limits.settle_ms_max:
            self._settling_since_ms = None
            self._not_before_ms = now_ms + self._limits.settle_again_ms
            return False
        self._draw([i for i in unsettled if i.sent and max(i.reached, i.next) >= i.barrier], ends)
        return True

    def _inputs(self) -> list[Input]:
        return [target for shard, target in self._targets.values() if shard.active]

    def _draw(self, inputs: Sequence[Input], ends: Ends) -> None:
        if not inputs:
            return
        barriers = ends([i.place for i in inputs])
        for target in inputs:
            target.barrier = max(target.barrier, barriers[target.place])
            target.sent = False
