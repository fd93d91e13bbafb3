"""Lists the cases for the others, and puts together what each of them said: see the README beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from kapelle.processors.calendar import BadCron, Schedule, ScheduleType, normalised, times_of
from tests.golden.cron.make.cases import CASES, Case
from tests.golden.cron.make.reasons import REASONS

SAME: Final = "same"
REFUSED: Final = "refused"
Answers = dict[tuple[int, str], str]  # by the number of the case and the implementation


def shown(ms: int) -> str:
    """An instant as text."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return at.replace(tzinfo=None).isoformat(timespec="seconds").removesuffix(":00") + "Z"


def ours(case: Case) -> list[str] | str:
    """What Kapelle says."""
    try:
        times = times_of(Schedule(ScheduleType.CRON, normalised(case.cron), case.zone))
    except BadCron:
        return REFUSED
    found: list[str] = []
    at_ms = case.after_ms
    while len(found) < case.ticks and (tick := times.next_after(at_ms)) is not None:
        found.append(shown(tick))
        at_ms = tick
    return found


def read(paths: list[str]) -> Answers:
    """The answers of all implementations."""
    lines = [line.split("\t") for path in paths for line in Path(path).read_text().splitlines()]
    return {(int(number), name): said for number, name, said in lines}


def row(number: int, case: Case, answers: Answers) -> dict[str, object]:
    """A line of the table."""
    expected = ours(case)
    made: dict[str, object] = {
        "form": case.form,
        "cron": case.cron,
        "zone": case.zone,
        "after": case.after + "Z",
        "next": expected,
    }
    for name in ("croniter" if case.form == "unix" else "quartz", "cron-utils"):
        made[name] = compared(case, name, answers[number, name], expected)
    return made


def compared(case: Case, name: str, said: str, expected: list[str] | str) -> object:
    """What one implementation said, with the reason if it is something else."""
    is_refused = said.startswith(REFUSED)
    found: object = REFUSED if is_refused else [shown(int(ms)) for ms in said.split(",") if ms]
    if found == expected:
        return SAME
    reason = case.reasons.get(name)
    if reason is None:
        raise SystemExit(f"No reason why {name} says {found}, and not {expected}: {case}")
    return {"says": found, "reason": reason}


def table(paths: list[str]) -> Iterator[str]:
    """All lines: first what the reasons mean."""
    answers = read(paths)
    rows = [row(number, case, answers) for number, case in enumerate(CASES)]
    used = {said["reason"] for made in rows for said in made.values() if isinstance(said, dict)}
    if used != REASONS.keys():
        raise SystemExit(f"Not used: {', '.join(REASONS.keys() - used)}")
    yield json.dumps({"reasons": REASONS})
    yield from (json.dumps(made) for made in rows)


def main(what: str, *paths: str) -> None:
    """Write the cases, or the table."""
    if what == "cases":
        for number, case in enumerate(CASES):
            fields = (number, case.form, case.cron, case.zone, case.after_ms, case.ticks)
            sys.stdout.write("\t".join(map(str, fields)) + "\n")
    else:
        sys.stdout.writelines(line + "\n" for line in table(list(paths)))


if __name__ == "__main__":
    main(*sys.argv[1:])
