"""What the run strategies are meant to do, written down a second time and without anything of the engine.

Instances are `[run, letter]` by id: q queued, r running, S stopped, F failed, T timed out, ✓ succeeded.
"""

from collections.abc import Sequence

ALIVE = "qr"


class Model:
    """One workflow."""

    def __init__(self, rule: str, limit: int) -> None:
        self.rule = rule
        self.limit = limit
        self.instances: dict[int, tuple[int, str]] = {}
        self.blocking: set[int] = set()
        self.told: set[int] = set()
        self.requests: set[str] = set()

    def ids(self, letters: str) -> list[int]:
        return sorted(number for number, (_, letter) in self.instances.items() if letter in letters)

    def put(self, number: int, letter: str) -> None:
        """The latest run of an instance is now in this state."""
        self.instances[number] = (self.instances[number][0], letter)
        if letter == "F":
            self.blocking.add(number)
        if letter not in ALIVE:
            self.told.discard(number)

    def run(self) -> None:
        """Whatever may run, runs."""
        limit = self.limit if self.rule == "PARALLEL" else 1
        while self.ids("q") and len(self.ids("r")) < limit:
            if self.rule == "STRICT_SEQUENTIAL" and self.blocking:
                return
            self.put(self.ids("q")[0], "r")

    def start(self, batch: Sequence[tuple[str, bool]]) -> None:
        """Requests, and whether their parameters are broken."""
        arriving = []
        for request, is_broken in batch:
            if request in self.requests:
                continue
            self.requests.add(request)
            number = len(self.instances) + 1
            self.instances[number] = (1, "?")
            if is_broken:
                self.put(number, "F")
            else:
                arriving.append(number)
        self.arrive(arriving)

    def arrive(self, arriving: list[int]) -> None:
        if not arriving:
            return
        if self.rule == "FIRST_ONLY":
            taken = [] if self.ids(ALIVE) else arriving[:1]
        elif self.rule in ("LAST_ONLY", "SERIAL_LATEST_ONLY"):
            taken = arriving[-1:]
            for number in self.ids("q"):
                self.put(number, "S")
            if self.rule == "LAST_ONLY":
                self.told.update(self.ids("r"))
        else:
            taken = arriving
        for number in arriving:
            self.put(number, "q" if number in taken else "S")
        self.run()

    def end(self, number: int, letter: str) -> None:
        self.put(number, letter)
        self.run()

    def restart(self, number: int, request: str) -> None:
        """Only of an instance that has ended, by a request that was never made."""
        self.requests.add(request)
        self.blocking.discard(number)
        self.instances[number] = (self.instances[number][0] + 1, "?")
        self.arrive([number])

    def terminate(self, number: int, letter: str) -> None:
        if self.instances[number][1] == "q":
            self.put(number, letter)
        elif self.instances[number][1] == "r":
            self.told.add(number)
        self.run()

    def terminate_all(self, letter: str) -> None:
        for number in self.ids("r"):
            self.told.add(number)
        for number in self.ids("q"):
            self.put(number, letter)

    def unblock(self, number: int | None) -> None:
        self.blocking -= {number} if number is not None else set(self.blocking)
        self.run()

    def switch(self, rule: str, limit: int) -> bool:
        """Whether it is allowed."""
        if rule != self.rule:
            if rule in ("FIRST_ONLY", "LAST_ONLY") and len(self.ids(ALIVE)) > 1:
                return False
            if rule == "STRICT_SEQUENTIAL" and self.blocking:
                return False
        self.rule, self.limit = rule, limit
        self.run()
        return True

    def seen(self) -> str:
        return " ".join(
            f"{number}{f'.{run}' if run > 1 else ''}{letter}"
            for number, (run, letter) in sorted(self.instances.items())
        )
