"""Workers, and things that are none, for `kapelle worker run`."""

from kapelle.worker import Worker

number = 7
empty = Worker()
worker = Worker()
other = Worker()


@worker.step("load")
def load(rows: int = 1) -> dict[str, int]:
    return {"rows": rows}


@other.step("load")
def load_too() -> None:
    """The same type again."""
