"""The tables of `intake`: none."""

from kapelle.processors.tables import Tables


class Intake(Tables):
    """Intake remembers nothing: whether a signal is a repetition is known where its name is."""
