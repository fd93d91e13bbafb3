"""Sources of signals besides steps: topics of others, webhooks and databases. Each document becomes one signal.

Everything here only publishes. A signal that is published twice is one signal, because its id follows from where it was
found: what is read but not yet acknowledged may be read and published again, by anyone, at any time.
"""

from kapelle.processors.messages import Coordinates
from kapelle.sources.errors import BadSources, RegistryAway, RegistryRefused, SourcesError
from kapelle.sources.mapping import signal_of
from kapelle.sources.models import Format, Rule, SourcesFile, TopicSource, read_sources
from kapelle.sources.registry import Registry
from kapelle.sources.relay import TopicRelay
from kapelle.sources.source_file import WatchedFile

__all__ = [
    "BadSources",
    "Coordinates",
    "Format",
    "Registry",
    "RegistryAway",
    "RegistryRefused",
    "Rule",
    "SourcesError",
    "SourcesFile",
    "TopicRelay",
    "TopicSource",
    "WatchedFile",
    "read_sources",
    "signal_of",
]
