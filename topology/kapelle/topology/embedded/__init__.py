"""The embedded runtime: the same processors over one directory, for one machine, tests and simulations."""

from kapelle.topology.embedded.errors import (
    DirectoryDiffers,
    DirectoryTaken,
    EmbeddedError,
    LogDamaged,
    LogReplaced,
    NotIdle,
    QueueFull,
    RecordsMissing,
    Running,
    Stopped,
    UnknownPlace,
)
from kapelle.topology.embedded.inbox import Inbox, InboxLimits, Position
from kapelle.topology.embedded.log import EmbeddedLog
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.embedded.runtime import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.embedded.soundness import Damage, Lost, Witness

__all__ = [
    "Damage",
    "DirectoryDiffers",
    "DirectoryTaken",
    "EmbeddedError",
    "EmbeddedLog",
    "EmbeddedRuntime",
    "EmbeddedSettings",
    "Inbox",
    "InboxLimits",
    "LogDamaged",
    "LogRecord",
    "LogReplaced",
    "Lost",
    "NotIdle",
    "Position",
    "QueueFull",
    "RecordsMissing",
    "Running",
    "Stopped",
    "UnknownPlace",
    "Witness",
]
