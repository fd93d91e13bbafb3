"""What must hold of each limit, event by event: a model of the queue that knows nothing of the engine but its bounds.

1. Nobody gets a permit when as many are held as the limit allows at that event, or a second one of the same thing.
2. What is returned was held or queued, and is so no longer.
3. Who waits is admitted by class, turn and ticket. A class is passed over at most `PASSED_OVER_MAX` times in a row,
   and if several have waited so long, `PASSED_OVER_MAX` + 3 times.
4. Nobody waits while there is room. A decision is one event or a few: one that makes room or adds an attempt, and the
   admissions that follow from it. So between two decisions either nobody waits, or there is no room, or the last
   decision has emitted `AdmissionsLeft`: then a timer admits the rest.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.keys import TREE
from kapelle.processors.wiring import PERMIT_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality
from tests.proof.checks import Seen
from tests.proof.permits.histories import Holder, all_of, holder_of

CLASSES: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW)
NEUTRAL: Final = (c.CommandSettled, c.CommandRefused, c.TagWatched)
PASSED_OVER_MAX: Final = 10


class Place(msgspec.Struct, frozen=True, order=True):
    """Where an attempt waits. Lower places come first."""

    turn: int
    ticket: int
    criticality: Criticality = msgspec.field(default=Criticality.MEDIUM)
    workflow_id: str = ""


class Book(msgspec.Struct):
    """What the history of one limit tells."""

    key: str
    max: int | None = None
    sequence: int = 0
    ticket: int = 0
    held: set[Holder] = msgspec.field(default_factory=set)
    waiting: dict[Holder, Place] = msgspec.field(default_factory=dict)
    turns: dict[tuple[Criticality, str], int] = msgspec.field(default_factory=dict)  # the last one of each workflow
    turn: Counter[Criticality] = msgspec.field(default_factory=Counter)  # the latest one that was admitted from
    passed_over: Counter[Criticality] = msgspec.field(default_factory=Counter)
    is_admitting: bool = False  # a timer admits the rest
    before: Any = None
    problems: list[str] = msgspec.field(default_factory=list)
    longest: int = 0  # how often a class was passed over in a row

    @property
    def has_room(self) -> bool:
        return self.max is None or len(self.held) < self.max

    @property
    def is_idle(self) -> bool:
        """Whether somebody waits although there is room."""
        return bool(self.waiting) and self.has_room

    def see(self, event: Any) -> None:
        """The next event of the limit. Answers to requests change nothing: they may come between any two others."""
        if isinstance(event, NEUTRAL):
            return
        self._check_idle(event)
        match event:
            case c.LimitSet():
                self._limit(event, event.max)
            case c.LimitRemoved():
                self._limit(event, None)
            case c.PermitQueued():
                self._queue(event)
            case c.PermitGranted():
                self._grant(event)
            case c.PermitReturned():
                self._return(event)
            case c.AdmissionsLeft():
                self.is_admitting = True
        self.is_admitting = self.is_admitting and self.is_idle
        self.before = event

    def _problem(self, text: str) -> None:
        self.problems.append(f"{self.key}: {text}")

    def _check_idle(self, event: Any) -> None:
        if not self.is_idle or self.is_admitting or _is_admission(event) or isinstance(event, c.AdmissionsLeft):
            return
        self._problem(f"{len(self.waiting)} wait although {len(self.held)} of {self.max} are held, before {event}")

    def _limit(self, event: c.LimitSet | c.LimitRemoved, most: int | None) -> None:
        if event.sequence <= self.sequence:
            self._problem(f"limit {event.sequence} came after {self.sequence}")
        self.max, self.sequence = most, event.sequence

    def _check_new(self, event: c.PermitQueued | c.PermitGranted) -> Holder:
        holder = holder_of(event.holder)
        if holder in self.held or holder in self.waiting:
            self._problem(f"{holder} asked twice")
        if event.ticket <= self.ticket:
            self._problem(f"{holder} has the ticket {event.ticket} after {self.ticket}")
        self.ticket = event.ticket
        return holder

    def _queue(self, event: c.PermitQueued) -> None:
        holder, of_workflow = self._check_new(event), (event.criticality, event.workflow_id)
        now, last = self.turn[event.criticality], self.turns.get(of_workflow)
        turn = now if last is None else max(now, last + 1)
        if event.turn != turn:
            self._problem(f"{holder} has the turn {event.turn}, but its workflow is at {turn}")
        self.turns[of_workflow] = event.turn
        self.waiting[holder] = Place(event.turn, event.ticket, event.criticality, event.workflow_id)

    def _grant(self, event: c.PermitGranted) -> None:
        holder = holder_of(event.holder)
        if not self.has_room:
            self._problem(f"{holder} got a permit although {len(self.held)} of {self.max} were held")
        if self.key.startswith(TREE) and self.max is None:
            self._problem(f"{holder} got a permit of a tree without a limit")
        if event.has_waited:
            self._admit(holder, event)
        else:
            if self.waiting:
                self._problem(f"{holder} got a permit at once although {len(self.waiting)} waited")
            self._check_new(event)
        self.held.add(holder)

    def _admit(self, holder: Holder, event: c.PermitGranted) -> None:
        place = self.waiting.pop(holder, None)
        if place is None:
            self._problem(f"{holder} was admitted, but did not wait")
            return
        if (place.turn, place.ticket) != (event.turn, event.ticket):
            self._problem(f"{holder} was admitted from {event.turn, event.ticket}, but waited at {place}")
        ahead = [other for other in self.waiting.values() if other.criticality is place.criticality and other < place]
        if ahead:
            self._problem(f"{holder} at {place} was admitted before {min(ahead)}")
        left = {other.criticality for other in self.waiting.values()}
        better = {one for one in left if CLASSES.index(one) < CLASSES.index(place.criticality)}
        if better and self.passed_over[place.criticality] < PASSED_OVER_MAX:
            self._problem(f"{holder} of {place.criticality} was admitted before {sorted(better)}")
        self.turn[place.criticality] = max(self.turn[place.criticality], place.turn)
        self._forgive(place)
        self.passed_over = Counter({one: self.passed_over[one] + 1 for one in left if one is not place.criticality})
        self.longest = max(self.longest, *self.passed_over.values(), 0)
        if any(count > PASSED_OVER_MAX + len(CLASSES) - 1 for count in self.passed_over.values()):
            self._problem(f"classes were passed over too often in a row: {dict(self.passed_over)}")

    def _return(self, event: c.PermitReturned) -> None:
        holder = holder_of(event.holder)
        was_held, was_queued = holder in self.held, holder in self.waiting
        if not was_held and not was_queued:
            self._problem(f"{holder} returned what it neither held nor waited for")
        elif was_held is not event.was_held:
            self._problem(f"{holder} returned {'a place' if was_held else 'a permit'} that it did not have")
        self.held.discard(holder)
        place = self.waiting.pop(holder, None)
        if place is not None:
            self._forgive(place)
            if all(other.criticality is not place.criticality for other in self.waiting.values()):
                del self.passed_over[place.criticality]
        if self.key.startswith(TREE) and not self.held and not self.waiting:
            self.max, self.sequence, self.ticket = None, 0, 0  # the tree is forgotten, with all its numbers
            self.turns.clear()
            self.turn.clear()
            self.passed_over.clear()

    def _forgive(self, left: Place) -> None:
        """A workflow of which nobody waits any more owes nothing for turns that it took and did not use."""
        of_workflow = (left.criticality, left.workflow_id)
        if all((other.criticality, other.workflow_id) != of_workflow for other in self.waiting.values()):
            self.turns[of_workflow] = min(self.turns[of_workflow], self.turn[left.criticality])


def _is_admission(event: Any) -> bool:
    return isinstance(event, c.PermitGranted) and event.has_waited


def books_of(seen: Seen) -> dict[str, Book]:
    """Every limit that was ever asked for or set, by its key."""
    books = dict[str, Book]()
    for key, event in all_of(seen, PERMIT_EVENTS.name):
        books.setdefault(key, Book(key)).see(event)
    return books


def admission_violations(books: dict[str, Book]) -> Iterator[str]:
    """What was wrong at any event."""
    for book in books.values():
        yield from book.problems


def idle_violations(books: dict[str, Book]) -> Iterator[str]:
    """Who waits although there is room, once everything is at rest."""
    for book in books.values():
        if book.is_idle:
            yield f"{book.key}: at rest {len(book.waiting)} wait, but {len(book.held)} of {book.max} are held"
