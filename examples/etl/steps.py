"""A day of orders: extracted from a shop whose export is late, summed, and loaded in a way that can be repeated."""

import csv
import sqlite3
from pathlib import Path

from kapelle.worker import Context, Retryable, Worker

ORDERS = (("at", 12.5), ("de", 40.0), ("de", 2.5), ("fr", 7.0))

worker = Worker()


@worker.step("extract_orders")
def extract_orders(day: str, folder: Path, context: Context) -> dict[str, str | int]:
    if context.attempt == 1:
        raise Retryable(f"the export of {day} is not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"orders-{day}.csv"
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows(ORDERS)
    context.log(f"{len(ORDERS)} orders in {file}")
    return {"file": str(file), "rows": len(ORDERS)}


@worker.step("sum_by_country")
def sum_by_country(file: Path) -> dict[str, dict[str, str]]:
    totals: dict[str, float] = {}
    with file.open(newline="") as lines:
        for country, amount in csv.reader(lines):
            totals[country] = totals.get(country, 0.0) + float(amount)
    return {"totals": {country: f"{total:.2f}" for country, total in totals.items()}}


@worker.step("load_totals")
def load_totals(day: str, folder: Path, totals: dict[str, str]) -> dict[str, int]:
    with sqlite3.connect(folder / "sales.db") as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS sales (day TEXT, country TEXT, total TEXT, PRIMARY KEY (day, country))"
        )
        rows = [(day, country, total) for country, total in totals.items()]
        # Steps run at least once: a second time must leave what the first one left.
        database.executemany("INSERT OR REPLACE INTO sales VALUES (?, ?, ?)", rows)
    database.close()
    return {"countries": len(rows)}
