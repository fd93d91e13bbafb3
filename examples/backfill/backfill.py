"""Starts one instance for each day, and waits for all. A second run starts nothing twice: request ids contain the day.

python backfill.py 2026-01-01 7 http://127.0.0.1:8080
"""

import sys
from collections import Counter
from datetime import date, timedelta

from kapelle.client import Client


def backfill(url: str, first: date, days: int) -> Counter[str]:
    """How many of the days ended with which status."""
    with Client(url, user="backfill") as kapelle:
        started = []
        for number in range(days):
            day = (first + timedelta(number)).isoformat()
            started.append(kapelle.instances.start("copy-day", run_params={"day": day}, request_id=f"backfill-{day}"))
        ended = [kapelle.instances.wait("copy-day", one.workflow_instance_id) for one in started]
    return Counter(one.status for one in ended)


if __name__ == "__main__":
    said = dict(enumerate(sys.argv))
    first = date.fromisoformat(said.get(1, "2026-01-01"))
    for status, count in backfill(said.get(3, "http://127.0.0.1:8080"), first, int(said.get(2, "7"))).items():
        print(f"{count} {status}")
