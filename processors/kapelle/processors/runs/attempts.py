"""Attempts: the run, step, iteration and number of one try."""

import msgspec

from kapelle.processors.runs.tables import StepRow


class Attempt(msgspec.Struct, frozen=True):
    """Which try of which step: what its expressions, its token and its retries are made from."""

    step_id: str
    attempt: int
    iteration: int
    sequence: int
    retries: dict[str, int] = {}

    def seed(self, run: str) -> str:
        """A name for this attempt among all attempts of all runs."""
        return f"{run}/{self.step_id}/{self.iteration}/{self.attempt}"


def attempt_of(step_id: str, row: StepRow) -> Attempt:
    """The attempt that a row stands for."""
    return Attempt(step_id, row.attempt, row.iteration, row.sequence, row.retries)
