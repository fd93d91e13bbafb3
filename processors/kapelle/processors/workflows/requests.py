"""The content of a request to start, read from its JSON and checked."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.definitions import DefinitionRefused, Workflow, parse_tag
from kapelle.processors.definitions.json_text import bounded_decimal
from kapelle.processors.initiators import Initiator, initiator_of
from kapelle.processors.params import Definition, ParamError, Source, check_run_params, definitions_of
from kapelle.processors.params.nesting import NESTED_JSON_MAX, nests_too_deep
from kapelle.processors.refusals import badly_defined, invalid
from kapelle.schemas.contracts import InitiatorType, Start

# A record holds a million bytes, and that of a launch holds the definition beside what the start brings.
START_BYTES_MAX: Final = 950_000
DEPTH_MAX: Final = 10
INITIATORS_CACHED: Final = 256

# How instances are started, and at which stage their run parameters are then merged.
STARTED_BY: Final[Mapping[str, Source]] = {
    "MANUAL": Source.LAUNCH,
    "TIME": Source.TIME_TRIGGER,
    "SIGNAL": Source.SIGNAL,
    "SUBWORKFLOW": Source.SUBWORKFLOW,
}
# Who may claim which of them. The command tells who sent it: people send no others than `StartInstances`.
BY_PEOPLE: Final = ("MANUAL",)
BY_TRIGGERS: Final = ("TIME", "SIGNAL")
BY_PARENTS: Final = ("SUBWORKFLOW",)
MADE_BY_ENGINE: Final = frozenset(kind.value for kind in InitiatorType) - {*BY_PEOPLE, InitiatorType.OTHER.value}


def _number(text: str) -> Decimal:
    number = bounded_decimal(text)
    if number is None:
        raise OverflowError(text[:80])
    return number


_decoder: Final = msgspec.json.Decoder(float_hook=_number)


def _decoded(what: str, text: str) -> object:
    try:
        decoded = _decoder.decode(text)
    except OverflowError as error:
        raise invalid(f"Expected {what} with numbers that a double can hold, but found {error}") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError, ArithmeticError):
        raise invalid(f"Expected {what} as JSON, but found {text[:80]!r}") from None
    if nests_too_deep(text, decoded):
        raise invalid(f"Expected {what} as JSON that nests at most {NESTED_JSON_MAX} deep, but found deeper nesting")
    return decoded


def _object(what: str, text: str) -> dict[str, object]:
    if text == "{}":
        return {}
    decoded = _decoded(what, text)
    if not isinstance(decoded, dict):
        raise invalid(f"Expected {what} as a JSON object, but found {text[:80]!r}")
    return decoded


@lru_cache(maxsize=INITIATORS_CACHED)
def checked_initiator(text: str, allowed: tuple[str, ...]) -> Initiator:
    """Who or what starts an instance. Refuses what is no initiator, and what the sender must not claim."""
    body = _object("initiator", text)
    initiator = initiator_of(text)
    if initiator.kind not in allowed:
        why = ": only the engine starts instances like this" if initiator.kind in MADE_BY_ENGINE else ""
        raise invalid(f"Expected {' or '.join(allowed)} as initiator.type, but found {body.get('type')!r:.80}{why}")
    for name in ("params", "signals"):
        if not isinstance(body.get(name, {}), dict):
            raise invalid(f"Expected initiator.{name} as an object, but found {body[name]!r:.80}")
    ancestors = body.get("ancestors", [])
    if not isinstance(ancestors, list) or len(ancestors) > DEPTH_MAX:
        raise invalid(f"Expected at most {DEPTH_MAX} initiator.ancestors, but found {ancestors!r:.80}")
    return initiator


def traced(text: str, initiator: Initiator, trace: str | None) -> str:
    """The initiator with the trace that a start came with: its run may be launched by somebody else's end.

    A child knows its trace already, and what its parent heard last may have come with another.
    """
    if trace is None or initiator.traceparent is not None or initiator.root_cause is not None:
        return text
    return f'{text.rstrip()[:-1]},"traceparent":{msgspec.json.encode(trace).decode()}}}'


def run_params_of(text: str, *, trusted: bool = False) -> dict[str, Definition]:
    """The parameters that are given for the workflow. Those of a parent may have names that are the system's."""
    return _definitions("run_params", _object("run_params", text), trusted=trusted)


def step_run_params_of(text: str, workflow: Workflow) -> Mapping[str, object]:
    """The parameters that are given for steps, as they were written. Those for steps inside loops reach every round."""
    by_step = _object("step_run_params", text)
    known = {step.id for step in workflow.all_steps()} if by_step else frozenset()
    for step_id, raw in by_step.items():
        if step_id not in known:
            raise invalid(f"Expected a step of the workflow in step_run_params, but found {step_id!r:.80}")
        if not isinstance(raw, dict):
            raise invalid(f"Expected step_run_params.{step_id} as an object, but found {raw!r:.80}")
        _definitions(f"step_run_params.{step_id}", raw)
    return by_step


def _definitions(what: str, raw: Mapping[str, object], *, trusted: bool = False) -> dict[str, Definition]:
    try:
        if not trusted:
            check_run_params(raw)
        return definitions_of(raw)
    except ParamError as error:
        raise invalid(f"{error} ({what})") from None


def check_extras(start: Start) -> None:
    """Refuse tags and artifacts that are none."""
    _object("artifacts", start.artifacts)
    if start.runtime_tags == "[]":
        return
    tags = _decoded("runtime_tags", start.runtime_tags)
    if not isinstance(tags, list):
        raise invalid(f"Expected runtime_tags as a JSON list, but found {start.runtime_tags[:80]!r}")
    for tag in tags:
        try:
            parse_tag(msgspec.json.encode(tag))
        except DefinitionRefused as error:
            raise badly_defined("tags as runtime_tags", error) from None


def check_size(*texts: str) -> None:
    """Refuse what a record cannot hold when a run is launched."""
    if 4 * sum(map(len, texts)) <= START_BYTES_MAX:
        return
    size_bytes = sum(len(text.encode()) for text in texts)
    if size_bytes > START_BYTES_MAX:
        raise invalid(
            f"Expected a definition and a start of at most {START_BYTES_MAX:,} bytes, but found {size_bytes:,}"
        )
