"""Announcing a signal over HTTP. Errors are reported at once; valid bodies are read as on the topic of signals.

| form | how it is known |
|---|---|
| CloudEvents, binary | headers `ce-…`; the body is the data |
| CloudEvents, structured | `Content-Type: application/cloudevents+json`, or `specversion` in the body |
| JSON | everything else |
"""

from datetime import datetime
from typing import Annotated, Final
from urllib.parse import unquote_to_bytes

import msgspec
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from kapelle.api.callers import Writer
from kapelle.api.problems import BadRequest
from kapelle.processors.intake.forms import STRUCTURED, NotASignal, read
from kapelle.processors.messages import Foreign
from kapelle.processors.signals.bounds import ID_CHARS_MAX, LONG_MAX, NAME_CHARS_MAX, PARAMS_MAX, is_param
from kapelle.schemas import contracts as c

SHOWN_CHARS_MAX: Final = 80
ATTRIBUTE: Final = "ce-"  # what the headers of a CloudEvent begin with; on topics it is ce_
BATCH: Final = "application/cloudevents-batch"


def _params(given: dict[str, object]) -> dict[str, object]:
    """Strings and integers of 64 bits."""
    wrong = [name for name, value in given.items() if not is_param(value)]
    if wrong:
        named = ", ".join(repr(name[:SHOWN_CHARS_MAX]) for name in wrong[:PARAMS_MAX])
        raise ValueError(f"Expected strings and integers of 64 bits, but found other values for {named}")
    return given


def _moment(given: object) -> object:
    if given is None or (type(given) is int and 0 <= given <= LONG_MAX) or _is_time(given):
        return given
    raise ValueError(f"Expected a time as ISO 8601 or in milliseconds, but found {str(given)[:SHOWN_CHARS_MAX]!r}")


def _is_time(given: object) -> bool:
    try:
        return isinstance(given, str) and bool(datetime.fromisoformat(given))
    except ValueError:
        return False


MOMENT: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": LONG_MAX},
        {"type": "string", "maxLength": 64},
        {"type": "null"},
    ]
}
Moment = Annotated[object, AfterValidator(_moment), WithJsonSchema(MOMENT)]
SignalId = Annotated[str | None, Field(min_length=1, max_length=ID_CHARS_MAX)]


class AnnounceBody(BaseModel):
    """A signal to announce. Unknown keys are part of its payload."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
    params: Annotated[dict[str, object], Field(max_length=PARAMS_MAX), AfterValidator(_params)] = {}
    id: SignalId = None
    request_id: SignalId = None
    time: Moment = None
    request_time: Moment = None
    payload: object = None


# What a request may hold, for the page that describes the API. A CloudEvent in binary mode has any JSON for a body.
REQUEST_BODY: Final[dict[str, object]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": AnnounceBody.model_json_schema()},
            STRUCTURED.decode(): {
                "schema": {
                    "type": "object",
                    "required": ["specversion", "id", "source", "type"],
                    "properties": {
                        "specversion": {"type": "string", "enum": ["1.0"]},
                        **{name: {"type": "string", "minLength": 1} for name in ("id", "source", "type")},
                        "time": {"type": "string", "format": "date-time"},
                        "data": {"type": "object"},
                    },
                }
            },
        },
    }
}


async def _announced(request: Request, caller: Writer) -> c.AnnounceSignal:
    """The signal that a request announces. Its source is the request, by which what came of it is found."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        signal = _read(request, kind, body)
    except NotASignal as error:
        raise BadRequest(str(error)) from None
    source = {"request_id": caller.request_id, "user": caller.user}
    return msgspec.structs.replace(signal, source=msgspec.json.encode(source).decode())


Announced = Annotated[c.AnnounceSignal, Depends(_announced)]


def _read(request: Request, kind: str, body: bytes) -> c.AnnounceSignal:
    if kind.startswith(BATCH):
        raise BadRequest("Expected one CloudEvent, but found a batch: send each in a request of its own")
    if kind != "application/json" and not kind.endswith("+json"):
        raise BadRequest(f"Expected a body of application/json or {STRUCTURED.decode()}, but found {kind[:80]!r}")
    attributes = {name for name in request.headers if name.startswith(ATTRIBUTE)}
    if attributes:
        # What cannot stand in a header as it is, is written with percent signs there.
        headers = {f"ce_{name.removeprefix(ATTRIBUTE)}": unquote_to_bytes(request.headers[name]) for name in attributes}
        return read(_foreign(body), [*({"ce_id": b""} | headers).items()])
    members = _members(body)
    if kind.encode() == STRUCTURED or "specversion" in members:
        return read(_foreign(body), [("content-type", STRUCTURED)])
    _check(body)
    given = {name: value for name, value in members.items() if bytes(value).strip() != b"null"}
    return read(_foreign(msgspec.json.encode(given)), ())


def _foreign(body: bytes) -> Foreign:
    return Foreign(body, None, "", 0, 0)


def _check(body: bytes) -> None:
    """All that is wrong with an announcement in JSON, told at once."""
    try:
        checked = AnnounceBody.model_validate(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _no_json(error) from None
    except ValidationError as error:
        raise RequestValidationError(
            [problem | {"loc": ("body", *problem["loc"])} for problem in error.errors()]
        ) from None
    if checked.id is not None and checked.request_id is not None and checked.id != checked.request_id:
        raise BadRequest("Expected one signal id, but `id` and `request_id` differ")


def _members(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _no_json(error) from None


def _no_json(error: Exception) -> RequestValidationError:
    problem = f"Expected a JSON object, but {error}"
    return RequestValidationError([{"loc": ("body",), "msg": problem, "type": "json_invalid"}])
