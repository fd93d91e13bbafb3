"""What sinks count, each for itself, and how that is told."""

from typing import Final

from kapelle.topology.exposition import total

LABEL: Final = "sink"
SINKS: Final = {
    "read": total("sinks_read", "Records of public topics that were read for a sink."),
    "delivered": total("sinks_delivered", "Events that the sink has taken."),
    "filtered": total("sinks_filtered", "Events that the filter kept out."),
    "failed": total("sinks_failed", "Times that the sink did not take an event, and it was to be offered again."),
    "set_aside": total("sinks_set_aside", "Events that the sink will never take: dead letters."),
    "restarts": total("sinks_restarts", "Times that reading for the sink was begun anew after an error."),
}
