"""A processor: for each type of message what to decide, for each type of event how the tables change.

    counting = Processor("counting", tables=Counting, inputs=[ticks], events=counted)

    @counting.decides(Tick)
    def count(message: Message[Tick], state: Counting, now_ms: int) -> Iterator[Effect]:
        yield Emit(Counted(word=message.key, count=...))

    @counting.applies(Counted)
    def counted(message: Message[Counted], state: Counting) -> None:
        state.counts.put((message.key,), Count(message.value.count))

Laws, which the runtime and the tests hold:

1. `decide` reads tables and writes nothing; all that it decides comes back as effects.
2. `apply` writes tables and decides nothing; it never fails on an event that was once accepted.
3. Folding the events through `apply` alone rebuilds the same tables.
4. A timer that comes due is decided on like a message; its events must cancel it or set it anew.
5. A decision may be cut off at any point because it ran out of time, memory or stack. What is decided instead
   (`gives_up`) reads a few rows and evaluates nothing.

`decisions` says in which two shapes decisions are written, and which modules the package of a processor has.
"""

from collections.abc import Callable, Container, Iterable
from typing import Any, Generic, TypeVar

from kapelle.processors.effects import Effect
from kapelle.processors.errors import BadDeclaration
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.streams import Stream
from kapelle.processors.tables import Tables
from kapelle.schemas.contract import Contract

S = TypeVar("S", bound=Tables)
V = TypeVar("V")

Decide = Callable[[Message[V], S, int], Iterable[Effect]]
Apply = Callable[[Message[V], S], None]
GiveUp = Callable[[Message[V], str, S, int], Iterable[Effect]]
Read = Callable[[V], object]
Law = Callable[[S], Iterable[str]]  # what is wrong with the tables of a partition

# By type. Each takes messages of its own type only, which no type of a dictionary can say.
Deciders = dict[type[object], Decide[Any, S]]
Appliers = dict[type[object], Apply[Any, S]]
GivenUp = dict[type[object], GiveUp[Any, S]]
Readers = dict[type[object], Read[Any]]


class Processor(Generic[S]):
    """The handlers, streams and tables of one processor, gathered by its decorators."""

    def __init__(
        self, name: str, *, tables: type[S], inputs: Iterable[Stream], events: Stream, outputs: Iterable[Stream] = ()
    ) -> None:
        self.name = name
        self.tables = tables
        self.inputs = tuple(inputs)
        self.events = events
        self.outputs = tuple(outputs)
        self.deciders: Deciders[S] = {}
        self.appliers: Appliers[S] = {}
        self.given_up: GivenUp[S] = {}
        self.readers: Readers = {}
        self.ignored: dict[type[Contract], tuple[bytes, ...]] = {}  # unless the key begins with one of these
        self.background: set[str] = set()  # kinds of timers: the part of their names before the first slash
        self.turns_named: set[str] = set()  # those of them whose names tell whose turn it is
        self.laws: list[Law[S]] = []  # what must hold of the tables after every event
        self.is_patient = False  # nobody inside waits for it: its records may be folded in a few large turns

    def decides(self, contract: type[V]) -> Callable[[Decide[V, S]], Decide[V, S]]:
        """Register what is decided on messages of this type."""

        def register(decide: Decide[V, S]) -> Decide[V, S]:
            self._refuse_second(self.deciders, contract, "decide")
            self.deciders[contract] = decide
            return decide

        return register

    def gives_up(self, *contracts: type[V]) -> Callable[[GiveUp[V, S]], GiveUp[V, S]]:
        """Register what is decided instead on messages of these types whose decision ran out of time or memory.

        It is handed the reason. The message becomes a dead letter as well; without this, that is all.
        """

        def register(give_up: GiveUp[V, S]) -> GiveUp[V, S]:
            for contract in contracts:
                self._refuse_second(self.given_up, contract, "give-up")
                self.given_up[contract] = give_up
            return give_up

        return register

    def applies(self, contract: type[V]) -> Callable[[Apply[V, S]], Apply[V, S]]:
        """Register how events of this type change the tables."""

        def register(apply: Apply[V, S]) -> Apply[V, S]:
            self._refuse_second(self.appliers, contract, "apply")
            self.appliers[contract] = apply
            return apply

        return register

    def reads(self, contract: type[V]) -> Callable[[Read[V]], Read[V]]:
        """Register what reads the documents within messages of this type, such as JSON, before they are decided on.

        If it raises, the record is unfit: a dead letter. Commands that are delivered within a cycle are not read: a
        processor has just written them.
        """

        def register(read: Read[V]) -> Read[V]:
            self._refuse_second(self.readers, contract, "reader")
            self.readers[contract] = read
            return read

        return register

    def ignores(self, contract: type[Contract]) -> None:
        """Decide nothing on messages of this type. Where their first bytes tell what they are, the rest is not read."""
        self.decides(contract)(_nothing)
        self.ignored[contract] = ()

    def reads_only(self, contract: type[Contract], keys: Iterable[str]) -> None:
        """Pass over records of this type whose keys begin with none of these texts, without reading them.

        Their decision must decide nothing: what is read depends on the framing, and on schemas of other releases.
        """
        self.ignored[contract] = tuple(key.encode() for key in keys)

    def law(self, check: Law[S]) -> Law[S]:
        """Register what must hold of the tables of a partition after every event. `kapelle verify` checks it."""
        self.laws.append(check)
        return check

    def timer_due(self, decide: Decide[TimerDue, S]) -> Decide[TimerDue, S]:
        """Register what is decided when a timer comes due."""
        return self.decides(TimerDue)(decide)

    def in_background(self, kind: str, *, turns_named: bool = False) -> None:
        """Timers of this kind go on with work that a decision left over. They fire after all else, in fair turns.

        Turns go by the part of a timer's key before the first slash, so that many keys of one workflow count as one.
        With `turns_named` they go by the second part of the timer's name, after the kind and a slash.
        """
        self.background.add(kind)
        if turns_named:
            self.turns_named.add(kind)

    def check(self) -> None:
        """Refuse a processor that would fail on the first record of some type."""
        taken: set[type[object]] = {contract for stream in self.inputs for contract in stream.contracts}
        self._refuse_gap("decides", taken, set(self.deciders) - {TimerDue})
        self._refuse_gap("applies", set(self.events.contracts), set(self.appliers))
        if extra := set(self.given_up) - set(self.deciders):
            raise BadDeclaration(
                f"Expected {self.name!r} to give up only what it decides on, but found {_names(extra)}"
            )
        if not self.inputs:
            raise BadDeclaration(f"Expected processor {self.name!r} to have an input stream, but it has none")

    def _refuse_gap(self, decorator: str, expected: set[type[object]], found: set[type[object]]) -> None:
        missing, extra = expected - found, found - expected
        if missing or extra:
            raise BadDeclaration(
                f"Expected one @{self.name}.{decorator} for each type of its streams, but "
                f"{_names(missing)} have none and {_names(extra)} are on no stream"
            )

    def _refuse_second(self, handlers: Container[type[object]], contract: type[object], kind: str) -> None:
        if contract in handlers:
            raise BadDeclaration(f"Expected one {kind} for {contract.__name__} in {self.name!r}, but found a second")


def _nothing(_: Message[object], __: Tables, ___: int) -> Iterable[Effect]:
    return ()


def _names(types: set[type[object]]) -> str:
    return ", ".join(sorted(t.__name__ for t in types)) or "no types"
