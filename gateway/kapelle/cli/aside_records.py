"""Records that the operator sets aside: `kapelle.runs.commands-3@1234`."""

import re
from collections.abc import Sequence
from typing import Final

from kapelle.cli.errors import BadRecord
from kapelle.topology.settings import RecordAt

_RECORD: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]{1,5})@(?P<offset>[0-9]{1,18})")


def records_at(texts: Sequence[str] | None) -> frozenset[RecordAt]:
    """The records that were named. Raises `BadRecord`."""
    return frozenset(_record(text) for text in texts or ())


def _record(text: str) -> RecordAt:
    match = _RECORD.fullmatch(text)
    if match is None:
        raise BadRecord(text)
    return RecordAt(match["topic"], int(match["partition"]), int(match["offset"]))
