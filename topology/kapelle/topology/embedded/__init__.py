"""The embedded runtime: the same processors over one directory, for one machine, tests and simulations."""

from kapelle.topology.embedded.errors import (
    DirectoryDiffers,
    EmbeddedError,
    LogDamaged,
    NotIdle,
    QueueFull,
    Running,
    Stopped,
    UnknownPlace,
)
from kapelle.topology.embedded.inbox import Inbox, InboxLimits, Position
from kapelle.topology.embedded.log import EmbeddedLog
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.embedded.runtime import EmbeddedRuntime, EmbeddedSettings

__all__ = [
    "DirectoryDiffers",
    "EmbeddedError",
    "EmbeddedLog",
    "EmbeddedRuntime",
    "EmbeddedSettings",
    "Inbox",
    "InboxLimits",
    "LogDamaged",
    "LogRecord",
    "NotIdle",
    "Position",
    "QueueFull",
    "Running",
    "Stopped",
    "UnknownPlace",
]
