"""Who may hold permits, written down a second time with plain lists and without anything of the engine.

Attempts are names. A queue is a list of those that wait, in the order in which they came. Each has a turn; the first of
those with the lowest turn is next. `rest` says that a batch was full, and that more can be admitted.
"""

from dataclasses import dataclass, field

CLASSES = ("CRITICAL", "HIGH", "MEDIUM", "LOW")
PATIENCE = 10


@dataclass
class Place:
    """An attempt that waits."""

    name: str
    workflow: str
    turn: int


@dataclass
class Model:
    """One limited thing. `most` is None without a limit."""

    batch: int
    most: int | None = None
    rest: bool = False
    snapshot: int = 0
    held: list[str] = field(default_factory=list)
    queues: dict[str, list[Place]] = field(default_factory=lambda: {name: [] for name in CLASSES})
    reached: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    requests: set[str] = field(default_factory=set)
    admitted: list[str] = field(default_factory=list)

    def waiting(self) -> list[str]:
        return [place.name for name in CLASSES for place in sorted(self.queues[name], key=lambda place: place.turn)]

    def is_possible(self) -> bool:
        return bool(self.waiting()) and (self.most is None or len(self.held) < self.most)

    def fill(self) -> None:
        """Something has changed: admit, unless that is going on already."""
        self.rest = self.rest and self.is_possible()
        if not self.rest:
            self.admit()

    def admit(self) -> None:
        """Admit a batch of those for whom there is room."""
        for _ in range(self.batch):
            if not self.is_possible():
                break
            waiting = [name for name in CLASSES if self.queues[name]]
            tired = [name for name in waiting if self.passed[name] >= PATIENCE]
            chosen = max(tired, key=lambda name: self.passed[name]) if tired else waiting[0]
            for name in CLASSES:
                self.passed[name] = self.passed[name] + 1 if name in waiting and name != chosen else 0
            place = min(self.queues[chosen], key=lambda place: place.turn)
            self.reached[chosen] = max(self.reached[chosen], place.turn)
            self.leave(chosen, place)
            self.held.append(place.name)
            self.admitted.append(place.name)
        self.rest = self.is_possible()

    def leave(self, chosen: str, place: Place) -> None:
        self.queues[chosen].remove(place)
        if not any(other.workflow == place.workflow for other in self.queues[chosen]):
            at = (chosen, place.workflow)
            self.last[at] = min(self.last[at], self.reached[chosen])

    def ask(self, name: str, workflow: str, chosen: str) -> None:
        if name in self.held or name in self.waiting():
            return
        if not self.waiting() and (self.most is None or len(self.held) < self.most):
            self.held.append(name)
            self.admitted.append(name)
            return
        now, before = self.reached[chosen], self.last.get((chosen, workflow))
        turn = now if before is None else max(now, before + 1)
        self.last[chosen, workflow] = turn
        self.queues[chosen].append(Place(name, workflow, turn))

    def give_back(self, name: str) -> None:
        if name not in self.held + self.waiting():
            return
        if name in self.held:
            self.held.remove(name)
        for chosen in CLASSES:
            for place in [place for place in self.queues[chosen] if place.name == name]:
                self.leave(chosen, place)
                if not self.queues[chosen]:
                    self.passed[chosen] = 0
        self.fill()

    def limit(self, most: int | None, request: str) -> None:
        """A request of people."""
        if request not in self.requests:
            self.requests.add(request)
            if most == self.most:
                return
            self.most = most
            self.fill()

    def limit_by(self, most: int | None, snapshot: int) -> None:
        """News of the properties of a workflow."""
        if snapshot > self.snapshot:
            self.most, self.snapshot = most, snapshot
            self.fill()

    def bring(self, most: int, snapshot: int) -> None:
        """A request of a step brings the limit that its run knows."""
        if snapshot >= self.snapshot and (most, snapshot) != (self.most, self.snapshot):
            self.most, self.snapshot = most, snapshot
            self.fill()
