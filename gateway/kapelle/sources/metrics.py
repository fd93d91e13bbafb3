"""What relays count, and how that is told. No relay is imported here: some of them need extras."""

from typing import Final

from kapelle.topology.exposition import total

SOURCES: Final = {
    "read": total("sources_read", "Records of the topics of sources that were read."),
    "announced": total("sources_announced", "Signals that were announced for them."),
    "filtered": total("sources_filtered", "Times that a filter kept a record out."),
    "set_aside": total("sources_set_aside", "Times that a source could make no signal of a record: dead letters."),
    "waits": total("sources_waits", "Times that Kafka or a registry had to be waited for."),
    "reloads": total("sources_reloads", "Times that the file of sources has changed."),
}
OUTBOX: Final = {
    "published": total("outbox_published", "Rows of the outbox that were published as signals."),
    "refused": total("outbox_refused", "Rows of the outbox that make no signal."),
    "waits": total("outbox_waits", "Times that Kafka or the database had to be waited for."),
}
OPENLINEAGE: Final = {
    "read": total("openlineage_read", "Events of the history that were read."),
    "emitted": total("openlineage_emitted", "Events of OpenLineage that Kafka has acknowledged."),
    "unreadable": total("openlineage_unreadable", "Events of the history that could not be read, and were passed by."),
    "waits": total("openlineage_waits", "Times that Kafka had to be waited for."),
}
TRACES: Final = {
    "read": total("traces_read", "Events of the history that were read and told of."),
    "remembered": total("traces_remembered", "Events that were read again, for what had begun and not ended."),
    "exported": total("traces_exported", "Spans that the collector has taken."),
    "unreadable": total("traces_unreadable", "Events of the history that could not be read, and were passed by."),
    "waits": total("traces_waits", "Times that the collector had to be waited for."),
}
