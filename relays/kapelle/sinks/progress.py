"""The handled records of each partition, in whatever order they were handled.

The law: an offset is told only when all records before it are done. So what is committed was delivered, or put aside.
"""

import threading
from collections import deque
from collections.abc import Collection

from kapelle.topology.log import Place


class Ticket:
    """A record on its way. One that is void belongs to somebody else by now."""

    __slots__ = ("is_done", "is_void", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.is_done = False
        self.is_void = False


class Progress:
    """The records that are on their way. One thread begins and commits; any may end."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._open: dict[Place, deque[Ticket]] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """How many have begun and not ended."""
        with self._lock:
            return self._count

    def begin(self, place: Place, offset: int) -> Ticket:
        """A record is taken. Those of one partition come in their order."""
        ticket = Ticket(offset)
        with self._lock:
            self._open.setdefault(place, deque()).append(ticket)
            self._count += 1
        return ticket

    def end(self, ticket: Ticket) -> None:
        """It is delivered or put aside."""
        with self._lock:
            if not ticket.is_void and not ticket.is_done:
                ticket.is_done = True
                self._count -= 1
                self._lock.notify_all()

    def ends(self) -> dict[Place, int]:
        """What comes next, of each partition that has come further since this was asked."""
        ends: dict[Place, int] = {}
        with self._lock:
            for place, tickets in self._open.items():
                while tickets and tickets[0].is_done:
                    ends[place] = tickets.popleft().offset + 1
        return ends

    def forget(self, places: Collection[Place]) -> None:
        """Others read these partitions now."""
        with self._lock:
            for place in places:
                for ticket in self._open.pop(place, ()):
                    self._count -= not ticket.is_done
                    ticket.is_void = True
            self._lock.notify_all()

    def wait_below(self, count: int, wait_s: float) -> bool:
        """Wait until fewer than so many are on their way; tells whether it came to that."""
        with self._lock:
            return self._lock.wait_for(lambda: self._count < count, wait_s)
