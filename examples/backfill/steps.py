"""Copying a day, and checking that it arrived."""

from datetime import date

from kapelle.worker import NonRetryable, Worker

ROWS_PER_DAY = 1_000

worker = Worker()


@worker.step("copy_day")
def copy_day(day: date) -> dict[str, int]:
    return {"rows": ROWS_PER_DAY + day.day}


@worker.step("check_day")
def check_day(day: date, rows: int) -> None:
    if rows < ROWS_PER_DAY:
        raise NonRetryable(f"Expected {ROWS_PER_DAY} rows of {day} or more, but found {rows}")
