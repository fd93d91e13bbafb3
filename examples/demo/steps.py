"""The steps of the demo: one that fails at first, one that works, one that fails until somebody approves."""

from kapelle.worker import Context, NonRetryable, Retryable, Worker

worker = Worker()


@worker.step("fetch")
def fetch(day: str, context: Context) -> dict[str, int]:
    if context.attempt == 1:
        raise Retryable(f"the export of {day} is not there yet")
    return {"rows": 1_200}


@worker.step("clean")
async def clean(rows: int) -> dict[str, int]:
    return {"good": rows - 7}


@worker.step("publish")
def publish(good: int, approved: bool) -> None:
    if not approved:
        raise NonRetryable(f"nobody has approved these {good} rows")
