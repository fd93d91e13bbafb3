"""The query parameters that filter instances."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Depends, Query

from kapelle.api.problems import BadRequest
from kapelle.schemas.contracts import InstanceStatus
from kapelle.views.labels import VALUE_CHARS_MAX, backfill_label, initiator_label, param_label, tag_label
from kapelle.views.queries.instance_lists import Filters

EACH_MAX: Final = 16  # values of one filter
MS_MAX: Final = 2**63 - 1
LABEL_CHARS_MAX: Final = 2 * VALUE_CHARS_MAX

Status = Annotated[
    list[InstanceStatus],
    Query(
        max_length=EACH_MAX,
        description="Return only instances with this status. Repeatable: an instance has one of them.",
    ),
]
Tag = Annotated[
    list[str],
    Query(
        max_length=EACH_MAX, description="Return only instances with this tag. Repeatable: an instance has all of them."
    ),
]
Param = Annotated[
    list[str],
    Query(
        max_length=EACH_MAX, description="Return only instances with this parameter value: `name=value`. Repeatable."
    ),
]
Initiator = Annotated[
    str | None,
    Query(
        max_length=64, description="Return only instances with this type of initiator: `manual`, `signal`, `time`, …"
    ),
]
BackfillId = Annotated[str | None, Query(max_length=64, description="Return only instances of this backfill.")]
Since = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Return only instances created at this time or later: ISO 8601, or milliseconds since 1970.",
    ),
]
Until = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Return only instances created before this time: ISO 8601, or milliseconds since 1970.",
    ),
]


def moment_ms(text: str | None, name: str) -> int | None:
    """A time as milliseconds since 1970."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and int(text) <= MS_MAX:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRequest(f"Expected {name} as ISO 8601 or in milliseconds, but found {text[:80]!r}") from None


def _within(since: Since = None, until: Until = None) -> tuple[int | None, int | None]:
    return moment_ms(since, "since"), moment_ms(until, "until")


def _labels(
    tag: Tag = [],  # noqa: B006 - FastAPI's
    param: Param = [],  # noqa: B006 - FastAPI's
    initiator: Initiator = None,
    backfill_id: BackfillId = None,
) -> tuple[str, ...]:
    """The labels to filter by, the most selective first."""
    labels = [backfill_label(backfill_id)] if backfill_id else []
    labels += [_param(text) for text in param] + [tag_label(text) for text in tag]
    labels += [initiator_label(initiator)] if initiator else []
    long = next((label for label in labels if len(label) > LABEL_CHARS_MAX), None)
    if long is not None:
        raise BadRequest(f"Expected to look for at most {VALUE_CHARS_MAX} characters, but found {long[:80]!r}…")
    return tuple(dict.fromkeys(labels))


def _param(text: str) -> str:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadRequest(f"Expected param as name=value, but found {text[:80]!r}")
    return param_label(name, value)


def _filters(
    within: Annotated[tuple[int | None, int | None], Depends(_within)],
    labels: Annotated[tuple[str, ...], Depends(_labels)],
    status: Status = [],  # noqa: B006 - FastAPI's
) -> Filters:
    since_ms, until_ms = within
    statuses = tuple(dict.fromkeys(state.value for state in status))
    return Filters(statuses=statuses, labels=labels, since_ms=since_ms, until_ms=until_ms)


InstanceFilters = Annotated[Filters, Depends(_filters)]
