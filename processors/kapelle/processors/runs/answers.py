"""The report that ended an attempt: a digest of it is in the event, so that a different report is recognized.

An attempt is answered once. A worker that did not receive the outcome sends the same report again, and learns that it
was accepted. A report with other outputs or signals is refused, whatever the state of the attempt.
"""

from hashlib import sha256
from typing import Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report

DIGEST_CHARS: Final = 32
GOING_ON: Final = frozenset({Report.STARTED, Report.HEARTBEAT})


def answer_of(report: c.ReportTask) -> str | None:
    """What tells an answer from others: kind, outputs and signals, however they are written. None for a heartbeat."""
    if report.report in GOING_ON:
        return None
    text = f"{report.report.value}\n{_canonical(report.outputs)}\n{_canonical(report.signals)}"
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]


def _canonical(text: str | None) -> str:
    if text is None:
        return ""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted").decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
