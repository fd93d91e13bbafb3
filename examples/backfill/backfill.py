"""Starts one instance for each day, three at a time, and waits for all. A second run starts only what is missing.

python backfill.py 2026-01-01 7 http://127.0.0.1:8080
"""

import sys
from datetime import date, timedelta

from kapelle.client import Client


def backfill(url: str, first: date, days: int) -> dict[str, int]:
    """How many of the days have ended with which status, and how many had an instance before."""
    with Client(url, user="backfill") as kapelle:
        last = first + timedelta(days - 1)
        started = kapelle.backfills.start("copy-day", first, last, every="1d", concurrency=3)
        for now in kapelle.backfills.watch("copy-day", started.backfill_id):
            print(now.status, now.ended, "of", now.total, file=sys.stderr)
    return {**now.counts, "EXISTING": now.existing}


if __name__ == "__main__":
    said = dict(enumerate(sys.argv))
    first = date.fromisoformat(said.get(1, "2026-01-01"))
    for status, count in backfill(said.get(3, "http://127.0.0.1:8080"), first, int(said.get(2, "7"))).items():
        print(f"{count} {status}")
