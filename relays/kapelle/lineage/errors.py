"""Errors of lineage, by who must act.

LineageError
├── operator: TopicMissing   the topic that events are written to is not there
└── time: NotEmitted         Kafka has not acknowledged what was written
"""


class LineageError(Exception):
    """Anything that keeps lineage from being told."""


class TopicMissing(LineageError):
    """Nothing is written to a topic that nobody has made: its settings are for whoever reads it to choose."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"Expected the topic {topic!r} for events of OpenLineage, but it does not exist: create it first"
        )
        self.topic = topic


class NotEmitted(LineageError):
    """Events were not acknowledged, now. They are written again."""
