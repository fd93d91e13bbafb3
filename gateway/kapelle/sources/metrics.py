"""The metrics of relays. No relay is imported here, because some of them need extras."""

from typing import Final

from kapelle.topology.exposition import total

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
