"""Maps a document to a signal, by a rule. `intake.forms` checks the signal, as it does for all publishers."""

from collections.abc import Mapping

import msgspec

from kapelle.processors.intake.forms import NotASignal, read
from kapelle.processors.messages import Coordinates, Foreign
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.sources.models import Filtered, Rule
from kapelle.sources.paths import NOTHING, Path


def signal_of(rule: Rule, document: object, at: Coordinates) -> AnnounceSignal | None:
    """The signal of a record; None if the filter keeps it out. Raises `NotASignal`."""
    return announced(rule, document, given_id=at.id, source=msgspec.structs.asdict(at))


def announced(rule: Rule, document: object, *, given_id: str, source: Mapping[str, object]) -> AnnounceSignal | None:
    """The signal of a document from anywhere, which has this id unless the rule finds one in it."""
    if not passes(rule, document):
        return None
    fields: dict[str, object] = {
        "name": _found(rule.name.of(document), "the name of the signal", rule.name.path),
        "params": {
            name: _found(term.of(document), f"parameter {name!r}", term.path) for name, term in rule.params.items()
        },
        "id": given_id if rule.id is None else _found(rule.id.find(document), "the id", rule.id),
    }
    if rule.time is not None:
        fields["time"] = _found(rule.time.find(document), "the time", rule.time)
    if rule.payload is not None:
        fields["payload"] = _found(rule.payload.find(document), "the payload", rule.payload)
    try:
        value = msgspec.json.encode(fields)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise NotASignal(f"Expected values that JSON can hold, but {error}") from None
    signal = read(Foreign(value, None, "", 0, 0), ())
    return msgspec.structs.replace(signal, source=msgspec.json.encode(source).decode())


def passes(rule: Filtered, document: object) -> bool:
    """Whether the filter lets a document pass. A value of another type is another value."""
    return all(
        any(type(choice) is type(value) and choice == value for choice in choices)
        for value, choices in ((path.find(document), choices) for path, choices in rule.filter)
    )


def _found(value: object, what: str, path: Path | None) -> object:
    if value is NOTHING or value is None:
        raise NotASignal(f"Expected {what} at {path}, but found nothing there")
    return value
