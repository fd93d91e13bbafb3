"""A worker with a step that cannot be served."""

from kapelle.worker import Worker

worker = Worker()


@worker.step("load")
def load(*rows: int) -> None:
    """Parameters are given by name, so this gets none."""
