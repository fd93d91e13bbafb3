"""The journal: publishing to the log and following it, for those who are outside the fold. One for each kind of log."""

from kapelle.topology.journal.embedded import EmbeddedJournal
from kapelle.topology.journal.errors import RECORD_FAULTS, JournalError, JournalUnavailable
from kapelle.topology.journal.journal import Entry, Follower, Journal, Mode, Point, Position
from kapelle.topology.journal.kafka import KafkaJournal

__all__ = [
    "RECORD_FAULTS",
    "EmbeddedJournal",
    "Entry",
    "Follower",
    "Journal",
    "JournalError",
    "JournalUnavailable",
    "KafkaJournal",
    "Mode",
    "Point",
    "Position",
]
