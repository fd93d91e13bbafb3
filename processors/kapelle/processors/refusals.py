"""How a command is refused: a decision raises what is wrong, and it becomes an event that answers the request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kapelle.processors.definitions import DefinitionRefused
from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Refusal

# An answer is for people and fits into a record, whatever the command was.
MESSAGE_CHARS_MAX: Final = 2_000
ERRORS_MAX: Final = 100
STARTS_ANSWERED_MAX: Final = 10


class Refused(Exception):
    """A command that cannot be carried out. It never leaves the processor."""

    def __init__(self, refusal: Refusal, message: str, errors: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.refusal = refusal
        self.message = message[:MESSAGE_CHARS_MAX]
        self.errors = tuple(error[:MESSAGE_CHARS_MAX] for error in errors[:ERRORS_MAX])


def invalid(message: str, errors: Sequence[str] = ()) -> Refused:
    """What was asked for makes no sense."""
    return Refused(Refusal.INVALID, message, errors)


def conflict(message: str) -> Refused:
    """What was asked for cannot be done now."""
    return Refused(Refusal.CONFLICT, message)


def not_found(message: str) -> Refused:
    """What was asked about is not there."""
    return Refused(Refusal.NOT_FOUND, message)


def badly_defined(what: str, error: DefinitionRefused) -> Refused:
    """A definition with all its problems."""
    problems = [str(problem) for problem in error.problems]
    return invalid(f"Expected {what}, but found {len(problems)} problem{'s' * (len(problems) != 1)}", problems)


def refusing(command: object, refused: Refused, now_ms: int) -> Iterator[Effect]:
    """The answer to each request that the command carries."""
    for request_id in request_ids(command):
        yield Emit(
            c.CommandRefused(
                request_id=request_id,
                command=type(command).__name__,
                refusal=refused.refusal,
                message=refused.message,
                errors=refused.errors,
                at_ms=now_ms,
            )
        )


def refuse_given_up(message: Message[object], reason: str, _: object, now_ms: int) -> Iterable[Effect]:
    """The answer to a request whose decision ran out of time or memory."""
    return refusing(message.value, Refused(Refusal.UNPROCESSABLE, reason), now_ms)


def request_ids(command: object) -> list[str]:
    """The requests that wait for an answer, each once. An empty batch has a nameless one."""
    if isinstance(command, c.StartInstances | c.StartTriggered):
        return list(dict.fromkeys(start.request_id for start in command.starts))[:STARTS_ANSWERED_MAX] or [""]
    return [getattr(command, "request_id", "")]
