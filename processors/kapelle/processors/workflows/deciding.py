"""What all decisions have in common: they draft their events, may refuse, and carry a request out once.

A command that names a request ends in one event that names it too: `CommandSettled` or `CommandRefused`, and for starts
and restarts `InstanceCreated` or `StartDuplicated`. Whoever asked waits for that one.

A decision that ran out of time or memory is given up: its request is refused with the reason. Commands without a
request change what the workflow is; those that matter have a `gives_up` of their own beside their decision.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.workflows.processor import WorkflowDraft, workflows
from kapelle.processors.workflows.refusals import Refused, invalid, refusing
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import CommandStatus, Refusal

CHARS_MAX: Final = {"request_id": 256, "author": 256, "reason": 16_384}
INSTANCES: Final = ("instance_id", "after_instance_id", "upto_instance_id")
V = TypeVar("V", bound=Contract)
Decision = Callable[[V, WorkflowDraft, int], "Done | None"]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision has come to: it becomes the outcome of the command, its last event."""

    status: CommandStatus = CommandStatus.DONE
    instance_id: int | None = None
    version: int = 0
    count: int = 0
    reason: str = ""


def unchanged(reason: str, *, version: int = 0, instance_id: int | None = None) -> Done:
    """The outcome of a command that changes nothing."""
    return Done(status=CommandStatus.UNCHANGED, reason=reason, version=version, instance_id=instance_id)


def decides(contract: type[V]) -> Callable[[Decision[V]], Decision[V]]:
    """Register a decision. What it returns is the outcome; what it raises as `Refused` is all that comes of it.

    None: the outcome is another event that names the request (a start creates an instance), or comes later (a batch
    asks for the next one), or nobody waits for one. A request that was carried out before is not decided on again;
    starts and restarts look for themselves, because they answer with the instance.
    """
    names_request = "request_id" in contract.__struct_fields__
    acts_once = names_request and contract is not c.QueueRun

    def register(decide: Decision[V]) -> Decision[V]:
        @workflows.decides(contract)
        def handle(message: Message[V], state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
            command, draft = message.value, WorkflowDraft(workflows, message.key, state)
            draft.trace = message.trace
            try:
                _check_texts(command)
                done = (_repeated(command, draft) if acts_once else None) or decide(command, draft, now_ms)
            except Refused as refused:
                return list(refusing(command, refused, now_ms))
            if done is not None:
                _settle(command, draft, done, now_ms)
            return draft.effects

        if names_request or contract is c.StartInstances:
            workflows.gives_up(contract)(_refused)
        return decide

    return register


def _refused(message: Message[Contract], reason: str, _: WorkflowTables, now_ms: int) -> Iterable[Effect]:
    return refusing(message.value, Refused(Refusal.UNPROCESSABLE, reason), now_ms)


def _check_texts(command: Contract) -> None:
    """Refuse ids and reasons that are too long to be keys, or to be repeated in a hundred events; negative numbers."""
    if isinstance(command, c.RecordRunEnd):
        return  # an end is true, however it is told
    for name, chars_max in CHARS_MAX.items():
        found = len(getattr(command, name, ""))
        if found > chars_max:
            raise invalid(f"Expected {name} of at most {chars_max:,} characters, but found {found:,}")
    for name in INSTANCES:
        number = getattr(command, name, None)
        if number is not None and number < 0:
            raise invalid(f"Expected {name} of at least 0, but found {number}")


def _repeated(command: Any, draft: WorkflowDraft) -> Done | None:
    """The outcome of a request that was carried out before. A batch that goes on is no repetition."""
    if getattr(command, "after_instance_id", 0):
        return None
    answer = draft.state.answers.get((draft.key, command.request_id))
    if answer is None:
        return None
    return unchanged("The request was carried out before", version=answer.version)


def _settle(command: Any, draft: WorkflowDraft, done: Done, now_ms: int) -> None:
    draft.emit(
        c.CommandSettled(
            request_id=command.request_id,
            command=type(command).__name__,
            status=done.status,
            workflow_id=draft.key,
            instance_id=done.instance_id,
            version=done.version,
            count=done.count,
            reason=done.reason,
            at_ms=now_ms,
        )
    )
