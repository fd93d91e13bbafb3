"""Members with one step of the protocol broken on purpose. The proof must catch them all, or it proves nothing."""

from collections.abc import Iterable

from kapelle.topology.crash import CrashPoint
from kapelle.topology.log import Place
from kapelle.topology.member import Member
from kapelle.topology.partition_time import Clock
from kapelle.topology.shard import Shard
from kapelle.topology.shard_time import ShardTime


class TablesBeforeCommit(Member):
    """Writes the tables first and commits afterwards: a crash between leaves tables that the log knows nothing of."""

    def _commit(self) -> None:
        self._send_rows()
        self._send_offsets()
        self._write_tables()
        self._crash(CrashPoint.AFTER_PRODUCE)
        self._crash(CrashPoint.BEFORE_COMMIT)
        self._log.commit()
        self._crash(CrashPoint.AFTER_COMMIT)


class OffsetsOutside(Member):
    """Commits the offsets in a transaction of their own, after the outputs: a crash between does the work again."""

    def _send_offsets(self) -> None:
        """Not yet."""

    def _write_tables(self) -> None:
        super()._write_tables()
        self._log.begin()
        super()._send_offsets()
        self._log.commit()


class OverlayKept(Member):
    """Keeps the overlay after an abort: what was given up is counted on."""

    def _rewind(self) -> None:
        self._waiting = []
        self._fold.forget()
        self._restorer.drop(list(self.shards.values()))
        self._arrived = list(self.shards.values())
        for shard in self._arrived:
            shard.active = False


class CommitRepeated(Member):
    """After a commit without an answer, assumes that it failed and goes on from memory instead of asking the log."""

    def _recover(self) -> None:
        positions = {shard: shard.offsets for shard in self.shards.values()}
        super()._recover()
        self._arrived = []
        for shard, offsets in positions.items():
            self._log.start(shard.processor.name, offsets)
            shard.active = True


class BarrierIgnored(Member):
    """Delivers within the cycle whatever still stands in the topic: commands overtake each other."""

    def _fill(self) -> bool:
        for shard in self.shards.values():
            for source in shard.inputs.values():
                source.barrier = 0
                source.sent = False
        return super()._fill()


class TargetsUnfenced(Member):
    """Sends offsets only for shards that read records: timers and direct deliveries are no longer fenced."""

    def _send_offsets(self) -> None:
        everything = set(self._fold.touched)
        self._fold.touched = {s for s in everything if self._has_read(s)}
        super()._send_offsets()
        self._fold.touched = everything

    def _has_read(self, shard: Shard) -> bool:
        before: dict[Place, int] = getattr(shard, "sent_offsets", {})
        read = shard.offsets != before
        shard.sent_offsets = shard.offsets  # type: ignore[attr-defined]
        return read


class ChangelogUnread(Member):
    """Trusts the local tables as they are and does not read the changelog."""

    def _admit(self) -> None:
        add = self._restorer.add

        def trusting(shards: list[Shard], clock: Clock) -> list[Shard]:
            add(shards, clock)
            self._restorer.drop(shards)
            return shards

        self._restorer.add = trusting  # type: ignore[method-assign, assignment]
        super()._admit()
        self._restorer.add = add  # type: ignore[method-assign]


class BoundUnread(Member):
    """Begins with a shard at what its own clock says, wherever the owner before it has been."""

    def _activate(self, shards: Iterable[Shard]) -> None:
        self.times.resume = lambda _: None  # type: ignore[method-assign, assignment]
        super()._activate(shards)


class BoundUnwritten(Member):
    """Does not write how late it is: the next owner cannot know."""

    def _send_rows(self) -> None:
        self.times.keep = lambda _: None  # type: ignore[method-assign, assignment]
        super()._send_rows()


class WallTrusted(Member):
    """Hands decisions what the wall clock says."""

    def _fill(self) -> bool:
        for shard in self.shards.values():
            shard.time = ShardTime()
        return super()._fill()


MUTANTS: dict[str, type[Member]] = {
    "tables-before-commit": TablesBeforeCommit,
    "offsets-outside": OffsetsOutside,
    "overlay-kept": OverlayKept,
    "commit-repeated": CommitRepeated,
    "barrier-ignored": BarrierIgnored,
    "targets-unfenced": TargetsUnfenced,
    "changelog-unread": ChangelogUnread,
    "bound-unread": BoundUnread,
    "bound-unwritten": BoundUnwritten,
    "wall-trusted": WallTrusted,
}
