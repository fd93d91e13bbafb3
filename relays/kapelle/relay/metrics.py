"""The metrics of relays, exposed and logged. No relay is imported here, because some of them need extras."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.topology.exposition import Metric, Statistics, exposition, total

LOG_S: Final = 30.0

SOURCES: Final = {
    "read": total("sources_read", "Records read from the topics of sources."),
    "announced": total("sources_announced", "Signals announced for records of sources."),
    "filtered": total("sources_filtered", "Records that a filter excluded, counted for each source."),
    "set_aside": total("sources_set_aside", "Records that a source could not map to a signal (dead letters)."),
    "waits": total("sources_waits", "Waits for Kafka or a schema registry."),
    "reloads": total("sources_reloads", "Reloads of the file of sources."),
}
OUTBOX: Final = {
    "published": total("outbox_published", "Rows of the outbox that were published as signals."),
    "refused": total("outbox_refused", "Rows of the outbox that are not valid signals."),
    "waits": total("outbox_waits", "Waits for Kafka or the database."),
}
OPENLINEAGE: Final = {
    "read": total("openlineage_read", "Events read from the history."),
    "emitted": total("openlineage_emitted", "OpenLineage events that Kafka has acknowledged."),
    "unreadable": total("openlineage_unreadable", "Events of the history that could not be read and were skipped."),
    "waits": total("openlineage_waits", "Waits for Kafka."),
}
TRACES: Final = {
    "read": total("traces_read", "Events of the history that were read and exported."),
    "remembered": total("traces_remembered", "Events that were read again for spans that had not ended."),
    "exported": total("traces_exported", "Spans that the collector has accepted."),
    "unreadable": total("traces_unreadable", "Events of the history that could not be read and were skipped."),
    "waits": total("traces_waits", "Waits for the collector."),
}
SINK: Final = "sink"  # each sink counts for itself, under this label
SINKS: Final = {
    "read": total("sinks_read", "Records of public topics read for the sink."),
    "delivered": total("sinks_delivered", "Events that the sink has accepted."),
    "filtered": total("sinks_filtered", "Events that the filter excluded."),
    "failed": total("sinks_failed", "Failed deliveries that will be retried."),
    "set_aside": total("sinks_set_aside", "Events that the sink refused permanently. They become dead letters."),
    "restarts": total("sinks_restarts", "Restarts of the sink after an error."),
}


class Waits(msgspec.Struct):
    """The count that most relays have. Each adds its own."""

    waits: int = 0


class Tally:
    """The counts of one relay: exposed to Prometheus, and logged now and then under one message."""

    def __init__(
        self,
        counts: Waits,
        metrics: Mapping[str, Metric],
        log: logging.Logger,
        message: str,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counts = counts
        self._metrics = metrics  # its names are those of the counts, in the order to show them
        self._log = log
        self._message = message
        self._now_s = now_s
        self._logged_s = now_s()

    def exposition(self, consumers: Mapping[str, Statistics] | None = None) -> str:
        """All counts, as Prometheus reads them, with the statistics of the consumers."""
        return exposition(self._counted(), consumers=consumers, metrics=self._metrics)

    def waits_for(self, reason: Exception) -> None:
        """Count and log that the relay waits, because of this."""
        self._counts.waits += 1
        self._log.warning("waiting", extra={"fields": {"reason": reason}})

    def log_now_and_then(self) -> None:
        """Log the counts if that was not done for a while."""
        if self._now_s() - self._logged_s >= LOG_S:
            self.log()

    def log(self) -> None:
        """Log the counts."""
        self._logged_s = self._now_s()
        self._log.info(self._message, extra={"fields": self._counted()})

    def _counted(self) -> dict[str, int]:
        counts = msgspec.structs.asdict(self._counts)
        return {name: counts[name] for name in self._metrics}
