"""What all decisions have in common: they draft their events, may refuse, and carry a request out once.

A decision that ran out of time or memory is given up: its request is refused with the reason. Commands without a
request change what the workflow is; those that matter have a `gives_up` of their own beside their decision.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.workflows.processor import WorkflowDraft, workflows
from kapelle.processors.workflows.refusals import Refused, invalid, refusing
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import Refusal

CHARS_MAX: Final = {"request_id": 256, "author": 256, "reason": 16_384}
INSTANCES: Final = ("instance_id", "after_instance_id", "upto_instance_id")
V = TypeVar("V", bound=Contract)
Decision = Callable[[V, WorkflowDraft, int], None]


class Requested(Protocol):
    """A command that names its request."""

    @property
    def request_id(self) -> str: ...


def decides(contract: type[V]) -> Callable[[Decision[V]], Decision[V]]:
    """Register a decision. What it raises as `Refused` is the answer, and nothing else comes of it."""

    def register(decide: Decision[V]) -> Decision[V]:
        @workflows.decides(contract)
        def handle(message: Message[V], state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
            draft = WorkflowDraft(workflows, message.key, state)
            draft.trace = message.trace
            try:
                _check_texts(message.value)
                decide(message.value, draft, now_ms)
            except Refused as refused:
                return list(refusing(message.value, refused, now_ms))
            return draft.effects

        if "request_id" in contract.__struct_fields__ or contract is c.StartInstances:
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


def is_repeated(command: Requested, draft: WorkflowDraft, now_ms: int) -> bool:
    """Whether the request was carried out before. If so it is answered, and there is nothing else to do."""
    answer = draft.state.answers.get((draft.key, command.request_id))
    if answer is None:
        return False
    settle(command, draft, now_ms, reason="The request was carried out before", version=answer.version)
    return True


def settle(command: Requested, draft: WorkflowDraft, now_ms: int, *, reason: str, version: int = 0) -> None:
    """Answer a request that changes nothing."""
    draft.emit(
        c.CommandSettled(
            request_id=command.request_id,
            command=type(command).__name__,
            workflow_id=draft.key,
            version=version,
            reason=reason,
            at_ms=now_ms,
        )
    )
