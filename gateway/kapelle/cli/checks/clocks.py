"""Clocks: those of the brokers and of the writers of our topics, compared with the clock of this machine.

A broker does not tell the time. But it writes its own beside what it keeps of transactions, and the transaction that
was just tried is the last of them; and the records of our topics bear the time of those who wrote them.
"""

from collections.abc import Iterator
from typing import Final

from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.cli.checks.topics import some
from kapelle.topology.kafka.answers import newest_times

TRANSACTIONS: Final = "__transaction_state"
WARN_MS: Final = 2_000
WRONG_MS: Final = 60_000
ADVICE: Final = "Synchronize the clocks of all machines with NTP: time-outs, leases and triggers depend on them"


def brokers(case: Case) -> Iterator[Finding]:
    """The clock of the brokers, by what they wrote last: not before the transaction that was tried, if one was."""
    description = case.metadata.topics.get(TRANSACTIONS) or case.admin.list_topics(
        TRANSACTIONS, timeout=case.timeout_s
    ).topics.get(TRANSACTIONS)
    numbers = list(description.partitions) if description else []
    times = _latest(case, [(TRANSACTIONS, number) for number in numbers])
    if not times:
        yield Finding("clock of the brokers", Verdict.OK, "unknown: there was no transaction yet")
        return
    latest_ms, tried_at_ms = max(times.values()), case.tried_at_ms
    ahead_ms = max(latest_ms - case.clock_ms(), 0)
    behind_ms = 0 if tried_at_ms is None else max(tried_at_ms - latest_ms, 0)
    yield _judged("clock of the brokers", ahead_ms or -behind_ms)


def writers(case: Case) -> Iterator[Finding]:
    """The clocks of those who write to our topics, as far as they are ahead of ours."""
    places = [(name, number) for name in case.there for number in case.metadata.topics[name].partitions]
    now_ms = case.clock_ms()
    ahead = {place: at_ms - now_ms for place, at_ms in _latest(case, places).items() if at_ms - now_ms > WARN_MS}
    if not ahead:
        yield Finding("clocks of writers", Verdict.OK, "no record has a time in the future")
        return
    names = sorted({topic for topic, _ in ahead})
    yield _judged(f"clocks of writers to {some(names)}", max(ahead.values()))


def _latest(case: Case, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The time of the latest record of each place that has any."""
    return {(at.topic, at.partition): ms for at, ms in newest_times(case.admin, places, case.timeout_s).items()}


def _judged(check: str, ahead_ms: int) -> Finding:
    seconds, way = abs(ahead_ms) / 1000, "ahead of" if ahead_ms > 0 else "behind"
    if abs(ahead_ms) <= WARN_MS:
        return Finding(check, Verdict.OK, f"within {WARN_MS // 1000} s of the local clock")
    verdict = Verdict.WRONG if abs(ahead_ms) > WRONG_MS else Verdict.WARNING
    return Finding(check, verdict, f"{seconds:,.0f} s {way} the local clock", ADVICE)
