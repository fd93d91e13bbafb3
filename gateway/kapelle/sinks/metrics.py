"""The metrics of sinks, by sink."""

from typing import Final

from kapelle.topology.exposition import total

LABEL: Final = "sink"
SINKS: Final = {
    "read": total("sinks_read", "Records of public topics read for the sink."),
    "delivered": total("sinks_delivered", "Events that the sink has accepted."),
    "filtered": total("sinks_filtered", "Events that the filter excluded."),
    "failed": total("sinks_failed", "Failed deliveries that will be retried."),
    "set_aside": total("sinks_set_aside", "Events that the sink refused for good. They become dead letters."),
    "restarts": total("sinks_restarts", "Restarts of the sink after an error."),
}
