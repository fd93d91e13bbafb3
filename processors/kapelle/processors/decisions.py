"""How processors decide, in two shapes, and where each part of a processor is.

**A generator of effects** (`intake`, `signals`, `triggers`, the publishers). A decision reads the tables, and yields or
returns its effects. It does not see its own events. It is registered on the processor itself:

    @signals.decides(c.AnnounceSignal)
    def announce(message: Message[c.AnnounceSignal], state: Signals, now_ms: int) -> Iterator[Effect]:
        yield Emit(c.SignalAccepted(…))

**A draft with refusals** (`workflows`, `runs`). A decision gets a `Draft`, which collects its effects and shows the
tables as they are after them. It may raise `Refused`: then the effects so far are dropped, and `CommandRefused` answers
the request. It is registered on the `OnDraft` of the processor, in one of two ways:

    @on_draft.decides(c.StartRun)          # a command that nobody waits for, or that is answered by another event
    def start_run(command: c.StartRun, draft: RunDraft, now_ms: int) -> None:
        draft.emit(c.RunStarted(…))

    @on_draft.carries_out(c.PushVersion)   # a request: carried out once, and answered by `CommandSettled`
    def push_version(command: c.PushVersion, draft: WorkflowDraft, now_ms: int) -> Done:
        return Done(version=7)

A command that names a request ends in one event that names it too: `CommandSettled` or `CommandRefused`, and for starts
and restarts `InstanceCreated` or `StartDuplicated`. The sender of the request waits for that event.

The package of a processor has these modules:

| module | content |
|---|---|
| `processor` | the `Processor`; with the second shape its draft and its `OnDraft` too |
| `tables` | the tables and their rows |
| `deciding` | the decisions. If several modules decide, it imports them, and says which decides what |
| `applying` | every `@….applies`; those of one subject may be in a module `…_applying`, which it imports |
| `documents` | every `@….reads`, if commands of other processors hold documents |
| `laws` | every `@….law`: what `kapelle verify` checks beside the fold |
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Generic, Protocol, TypeVar

import msgspec

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.refusals import Refused, refuse_given_up, refusing
from kapelle.processors.tables import Tables
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import CommandStatus

S = TypeVar("S", bound=Tables)
D = TypeVar("D", bound=Draft[Tables])
V = TypeVar("V", bound="Command")
Q = TypeVar("Q", bound="Request")


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a request. It becomes the last event of the request."""

    status: CommandStatus = CommandStatus.DONE
    instance_id: int | None = None
    run_id: int = 0
    version: int = 0
    count: int = 0
    reason: str = ""


# The outcome is decided later: by the next command of a batch, or by another processor.
LATER: Final = Done()


def unchanged(reason: str, *, version: int = 0, instance_id: int | None = None, run_id: int = 0) -> Done:
    """The outcome of a request that changes nothing."""
    return Done(status=CommandStatus.UNCHANGED, reason=reason, version=version, instance_id=instance_id, run_id=run_id)


def repeated(*, version: int = 0, instance_id: int | None = None, run_id: int = 0) -> Done:
    """The outcome of a request that was carried out before."""
    reason = "The request was already carried out"
    return unchanged(reason, version=version, instance_id=instance_id, run_id=run_id)


Decision = Callable[[V, D, int], None]
CarryOut = Callable[[V, D, int], Done]
Check = Callable[[object], None]  # raises `Refused`


class Command(Protocol):
    """What is decided on: a struct."""

    __struct_fields__: ClassVar[tuple[str, ...]]


class Request(Command, Protocol):
    """A command that is answered."""

    @property
    def request_id(self) -> str: ...

    @property
    def author(self) -> str: ...


class Rules(msgspec.Struct, Generic[D], frozen=True):
    """What differs between processors that decide on a draft."""

    workflow_id: Callable[[str], str]  # of a key of the processor
    earlier: Callable[[Request, D], Done | None]  # the outcome if it was carried out before
    check_of: Callable[[type[Command]], Check | None] = lambda _: None  # what is checked of each command of a type


class OnDraft(Generic[S, D]):
    """Registers the decisions of one processor that are made on a draft."""

    def __init__(self, processor: Processor[S], draft: Callable[[Processor[S], str, S], D], rules: Rules[D]) -> None:
        self._processor = processor
        self._draft = draft
        self._rules = rules

    def decides(self, contract: type[V]) -> Callable[[Decision[V, D]], Decision[V, D]]:
        """Register what is decided on messages of this type."""
        processor, new_draft, check = self._processor, self._draft, self._rules.check_of(contract)

        def register(decide: Decision[V, D]) -> Decision[V, D]:
            def handle(message: Message[V], state: S, now_ms: int) -> Iterable[Effect]:
                command, draft = message.value, new_draft(processor, message.key, state)
                draft.cause, draft.trace = message.id, message.trace
                try:
                    if check is not None:
                        check(command)
                    decide(command, draft, now_ms)
                except Refused as refused:
                    return list(refusing(command, refused, now_ms))
                return draft.effects

            processor.decides(contract)(handle)
            return decide

        return register

    def carries_out(self, contract: type[Q]) -> Callable[[CarryOut[Q, D]], CarryOut[Q, D]]:
        """Register how requests of this type are carried out: once, with the outcome that is returned.

        A request whose decision runs out of time or memory is refused with the reason.
        """
        rules, earlier = self._rules, self._rules.earlier

        def register(carry_out: CarryOut[Q, D]) -> CarryOut[Q, D]:
            def decide(command: Q, draft: D, now_ms: int) -> None:
                done = earlier(command, draft) or carry_out(command, draft, now_ms)
                if done is not LATER:
                    _settle(command, draft, done, workflow_id=rules.workflow_id(draft.key), now_ms=now_ms)

            self.decides(contract)(decide)
            self._processor.gives_up(contract)(refuse_given_up)
            return carry_out

        return register


def _settle(command: Request, draft: Draft[Tables], done: Done, *, workflow_id: str, now_ms: int) -> None:
    draft.emit(
        c.CommandSettled(
            request_id=command.request_id,
            command=type(command).__name__,
            status=done.status,
            workflow_id=workflow_id,
            instance_id=done.instance_id,
            version=done.version,
            run_id=done.run_id,
            count=done.count,
            reason=done.reason,
            at_ms=now_ms,
        )
    )
