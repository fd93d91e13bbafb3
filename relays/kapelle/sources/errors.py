"""Errors of sources, by who must act. A record that is no signal is `NotASignal`, and becomes a dead letter.

SourcesError
├── operator: BadSources        a file of sources that cannot be used: all that is wrong with it
├── operator: RegistryRefused   the registry does not let us read schemas
├── caller: NotSigned           a message that SNS did not send for us
├── operator: BadDsn            an address of a database that cannot be read
├── operator: DatabaseRefused   the table of the outbox is not there, or not for us
├── time: DatabaseAway          the database does not answer now
├── time: NotFetched            what SNS refers to cannot be had now
└── time: RegistryAway          the registry does not answer now
"""

from collections.abc import Sequence


class SourcesError(Exception):
    """Anything that keeps sources from being read."""


class BadSources(SourcesError):
    """A file of sources that cannot be used."""

    def __init__(self, problems: Sequence[str]) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"Expected a file of sources, but found:\n{listed}")
        self.problems = list(problems)


class RegistryRefused(SourcesError):
    """The registry does not let us read schemas: no wait mends that."""


class RegistryAway(SourcesError):
    """The registry does not answer as one, now."""


class BadDsn(SourcesError):
    """The address of a database cannot be read. The message never repeats it: it may hold a password."""


class DatabaseRefused(SourcesError):
    """The outbox cannot be used: no wait mends that."""


class DatabaseAway(SourcesError):
    """The database does not answer, now."""


class NotSigned(SourcesError):
    """A message that SNS did not send for a topic of ours. What exactly is wrong is nobody's business."""


class NotFetched(SourcesError):
    """A certificate or a confirmation cannot be had from SNS, now."""
