"""A model of composite steps, made of what the documents say and of nothing of the engine.

A tree of instances, steps and children. It knows no messages, no time and no tables: whatever is done to it has all its
consequences at once. All steps of a block are independent of each other. One parameter of the root reaches all leaves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

COMPLETE = {"SUCCEEDED", "SKIPPED", "COMPLETED_WITH_ERROR"}
AGAIN = {"FATALLY_FAILED", "TIMED_OUT", "STOPPED"}  # a step that ended so may be tried again while its instance runs
RUNNING = "RUNNING"

Kind = Literal["leaf", "foreach", "while", "sub"]


@dataclass(frozen=True)
class Spec:
    """A step of a definition."""

    name: str
    kind: Kind
    steps: tuple[Spec, ...] = ()
    count: int = 1  # iterations, or rounds
    window: int = 0
    strict: bool = False
    mode: str = "FAIL_AFTER_RUNNING"
    sync: bool = True  # whether a subworkflow is waited for


@dataclass(frozen=True)
class Path:
    """A restart on its way to something below: the step, the number of its child, and how that is restarted.

    Without a number, the step itself is restarted, or skipped.
    """

    name: str
    number: int = 0
    how: How = "incomplete"


How = Literal["all", "incomplete", "skip"] | Path


class Refused(Exception):
    """The model does not allow it."""


class Either(Exception):
    """The engine may do one thing or another, and be right both times. The model is of no use afterwards."""


@dataclass
class Instance:
    """An instance of a block."""

    specs: tuple[Spec, ...]
    above: Step | None = None
    number: int = 0
    status: str = "NONE"
    runs: int = 0
    given: int = 0  # the parameter
    steps: dict[str, Step] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)  # in its latest run
    is_from_above: bool = False  # its latest run was ended by an ancestor

    def start(self, how: How) -> None:
        """A new run."""
        self.status, self.runs, self.is_from_above = RUNNING, self.runs + 1, False
        self.given = self.above.inside.given if self.above is not None else self.given
        for spec in self.specs:
            self.steps.setdefault(spec.name, Step(spec, self))
        unfinished = [one for one in self.steps.values() if one.status not in COMPLETE]
        again = list(self.steps.values())
        if isinstance(how, Path):
            again = [self.steps[how.name]]
        elif how == "incomplete":
            again = unfinished or again
        is_resumed = how == "incomplete" and bool(unfinished)
        self.ran = {one.spec.name for one in again}
        for one in again:
            one.status = "CREATED"
            if not is_resumed and not (isinstance(how, Path) and one.resumes(how)):
                one.forget()
        for one in again:
            if one.status == "CREATED":
                one.begin("incomplete" if is_resumed else how)
        self.settle()

    def settle(self) -> None:
        """The run ends when none of its steps runs."""
        if self.status != RUNNING or any(one.status in (RUNNING, "CREATED") for one in self.steps.values()):
            return
        found = worst(self.steps[name].status for name in self.ran)
        self.status = found if found != "SUCCEEDED" else worst(one.status for one in self.steps.values())
        if self.is_from_above:
            self.status = "STOPPED"
        if self.above is not None:
            self.above.child_ended(self.number)

    def stop(self, status: str = "STOPPED") -> None:
        """End all that runs."""
        for one in self.steps.values():
            if one.status in (RUNNING, "CREATED"):
                one.stop_children()
                one.status = status
        self.settle()


def worst(statuses: object) -> str:
    """What the states of steps make of an instance."""
    found = set(statuses)  # type: ignore[call-overload]
    if "FATALLY_FAILED" in found:
        return "FAILED"
    if "TIMED_OUT" in found:
        return "TIMED_OUT"
    return "STOPPED" if "STOPPED" in found else "SUCCEEDED"


@dataclass
class Step:
    """A step of an instance. Its counters are what it knows of its children."""

    spec: Spec
    inside: Instance
    status: str = "NONE"
    children: dict[int, Instance] = field(default_factory=dict)
    todo: deque[int] = field(default_factory=deque)
    recent: set[int] = field(default_factory=set)  # launched since it began with nothing kept
    counted: set[int] = field(default_factory=set)  # launched since it was last asked to end as they end
    last: int = 0
    oldest: int = 1  # where the window of a strict order begins
    is_ending: bool = False
    is_skipped: bool = False  # its latest attempt was skipped before it could have children

    def counts(self, number: int) -> bool:
        """Whether the leaves of a child count."""
        return self.spec.sync and not self.is_skipped and self.has(number)

    def has(self, number: int) -> bool:
        """Whether a child belongs to the step, and was not left by what it did before it began from its beginning."""
        if self.spec.kind == "foreach":
            return number in self.recent
        return number in self.children and (self.spec.kind == "sub" or number <= self.last)

    def resumes(self, how: Path) -> bool:
        """Whether a restart of the step, or of something below it, leaves its children to it."""
        return how.number > 0 or self.spec.kind != "while"

    def forget(self) -> None:
        """Begin without the children that there are. A subworkflow runs the same child again."""
        self.recent, self.last = set(), 0

    # Launching

    def begin(self, how: How) -> None:
        """Run, with the children that the restart wants."""
        self.status, self.is_ending, self.is_skipped, kind = RUNNING, False, False, self.spec.kind
        if how == Path(self.spec.name, how="skip"):
            self.status, self.is_skipped = "SKIPPED", True
            return
        if kind == "leaf":
            return
        if isinstance(how, Path) and how.number:
            self.oldest = self.last + 1
            if kind != "foreach":
                self.last, self.counted = how.number, set()
            self.again_by_path(how.number, how.how)
            self.launch()
            return
        if isinstance(how, Path):
            how = "all" if kind == "while" else "incomplete"
        getattr(self, f"begin_{kind}")(how)

    def try_again(self, how: How) -> None:
        """Another attempt while the instance runs."""
        if self.spec.mode != "FAIL_AFTER_RUNNING":
            raise Refused
        self.inside.ran.add(self.spec.name)
        self.begin(how)
        self.inside.settle()

    def begin_foreach(self, how: How) -> None:
        """Those that succeeded are kept if the loop goes on."""
        if how == "all":
            self.recent = set()
        kept = {one for one in self.recent if self.children[one].status == "SUCCEEDED"}
        self.todo = deque(one for one in range(1, self.spec.count + 1) if one not in kept)
        self.counted, self.last, self.oldest = set(), 0, 1
        self.launch()

    def begin_while(self, how: How) -> None:
        """The last round, or the first one."""
        self.counted = set()
        if how == "incomplete" and self.last:
            self.again(self.last, "incomplete")
        else:
            self.last = 0
            self.launch()

    def begin_sub(self, how: How) -> None:
        """The child that there is, or a new one."""
        self.counted, known = set(), self.children.get(1)
        self.again(1, how if known is not None and known.status != "SUCCEEDED" else "all")
        if not self.spec.sync:
            self.finish()

    def launch(self) -> None:
        """As many as there is room for; the end if there is nothing to wait for."""
        while self.status == RUNNING and not self.is_ending and self.has_room():
            is_loop = self.spec.kind == "foreach"
            number = self.todo.popleft() if is_loop else self.last + 1
            self.oldest = number if self.oldest > self.last else self.oldest
            self.last = max(self.last, number)
            self.again(number, "incomplete" if is_loop and number in self.recent else "all")
        self.finish()

    def has_room(self) -> bool:
        """Whether one more may be launched."""
        running = [one for one in self.counted if self.children[one].status == RUNNING]
        if self.spec.kind == "while":
            good = all(self.children[one].status == "SUCCEEDED" for one in self.counted)
            return good and not running and self.last < self.spec.count
        if self.spec.kind == "sub" or not self.todo or self.ended_as("FAILED"):
            return False
        if self.spec.window == 0:
            return True
        taken = self.last + 1 - self.oldest if self.spec.strict else len(running)
        return taken < self.spec.window

    def again_by_path(self, number: int, how: How) -> None:
        """Run one child again because somebody asked for it, or for something in it.

        If it fails at once, because of another step that had failed in it, a loop may hear of this before or after it
        launches more.
        """
        self.again(number, how)
        if self.spec.kind == "foreach" and self.todo and self.children[number].status == "FAILED":
            raise Either

    def again(self, number: int, how: How) -> None:
        """Run a child, for the first time or again."""
        if number in self.todo:
            self.todo.remove(number)
        child = self.children.setdefault(number, Instance(self.spec.steps, self, number))
        self.recent.add(number)
        self.counted.add(number)
        child.start(how)

    # Ending

    def ended_as(self, status: str) -> bool:
        """Whether a child that counts has ended so."""
        return any(self.children[one].status == status for one in self.counted)

    def child_ended(self, number: int) -> None:
        """Count it, and go on."""
        if self.status != RUNNING or self.is_ending:
            return
        # One that runs again in its place does not hold the window back, but the window stops at it.
        if number == self.oldest <= self.last:
            following = range(number + 1, self.last + 1)
            busy = (one for one in following if one in self.children and self.children[one].status == RUNNING)
            self.oldest = next(busy, self.last + 1)
        if self.children[number].status == "FAILED" and self.spec.mode == "FAIL_IMMEDIATELY":
            self.stop_children()
        self.launch()
        self.inside.settle()

    def finish(self) -> None:
        """The step ends as its children have."""
        busy = self.status != RUNNING or self.ended_as(RUNNING)
        if not self.spec.sync:
            self.status = "SUCCEEDED"  # whatever becomes of the child
            return
        if busy or (not self.is_ending and self.has_room()):
            return
        if self.ended_as("FAILED"):
            self.fail()
        else:
            self.status = next((one for one in ("TIMED_OUT", "STOPPED") if self.ended_as(one)), "SUCCEEDED")

    def fail(self) -> None:
        """It has failed: the failure mode decides."""
        if self.spec.mode == "IGNORE_FAILURE":
            self.status = "COMPLETED_WITH_ERROR"
            return
        self.status = "FATALLY_FAILED"
        if self.spec.mode == "FAIL_IMMEDIATELY":
            self.inside.stop()

    def stop_children(self) -> None:
        """Whatever is done to a step, its children are stopped."""
        self.is_ending = True
        for one in list(self.children.values()):
            if one.status == RUNNING:
                one.is_from_above = True  # so it is STOPPED, whatever its steps are
                one.stop()

    def act(self, action: str) -> None:
        """Somebody ends the step."""
        if self.inside.status != RUNNING or self.status != RUNNING:
            raise Refused
        self.stop_children()
        if action == "KILL":
            self.fail()
        else:
            self.status = {"STOP": "STOPPED", "SKIP": "SKIPPED", "TIME_OUT": "TIMED_OUT"}[action]
        self.inside.settle()

    def skip_failed(self) -> None:
        """Somebody skips the step after it has failed."""
        if self.inside.status != RUNNING:
            climb(self.inside, Path(self.spec.name, how="skip"))
            return
        self.status, self.is_skipped = "SKIPPED", True
        self.inside.ran.add(self.spec.name)
        self.inside.settle()

    def report(self, *, is_good: bool) -> None:
        """The worker of a leaf reports."""
        self.status = "SUCCEEDED" if is_good else "FATALLY_FAILED"
        self.inside.settle()


def restart(instance: Instance, how: How, given: int | None = None) -> None:
    """Restart an instance that has ended: up to the first ancestor that runs, or to the root, and down again."""
    if instance.status == RUNNING:
        if not isinstance(how, Path) or instance.steps[how.name].status not in AGAIN:
            raise Refused
        instance.steps[how.name].try_again(how)
        return
    if how == "incomplete" and all(one.status in COMPLETE for one in instance.steps.values()):
        raise Refused
    instance.given = instance.given if given is None else given
    climb(instance, how)


def climb(instance: Instance, how: How) -> None:
    """One level up, or down from here."""
    step = instance.above
    if step is None:
        instance.start(how)
    elif not step.has(instance.number):
        raise Refused
    elif step.inside.status != RUNNING:
        climb(step.inside, Path(step.spec.name, instance.number, how))
    elif step.status in AGAIN:
        step.try_again(Path(step.spec.name, instance.number, how))
    elif step.status == RUNNING and step.spec.kind == "foreach" and step.spec.mode != "FAIL_IMMEDIATELY":
        step.again_by_path(instance.number, how)
        step.launch()
    else:
        raise Refused


def below(instance: Instance) -> Iterator[Instance]:
    """An instance and all that are below it."""
    yield instance
    for step in instance.steps.values():
        for number in sorted(step.children):
            yield from below(step.children[number])


def leaves(root: Instance) -> dict[tuple[int, str], Counter[str]]:
    """How many leaves of which status are below each composite step, by the identity of its instance.

    A leaf is a step that waits for no children of its own. It counts below every step that waits for it.
    """
    found: dict[tuple[int, str], Counter[str]] = {}
    for instance in below(root):
        own = Counter(one.status for one in instance.steps.values() if not any(map(one.counts, one.children)))
        above, child = instance.above, instance
        own["SUCCEEDED"] += above is not None and above.spec.kind == "while"  # the step that counts the rounds
        while above is not None and above.counts(child.number):
            found.setdefault((id(above.inside), above.spec.name), Counter()).update(own)
            child = above.inside
            above = child.above
    return found
