"""Reads and checks the JSON in events to publishers, before a decision."""

from kapelle.processors.definitions.properties import Properties
from kapelle.processors.publisher.processor import workflows
from kapelle.schemas import contracts as c


@workflows.reads(c.PropertiesChanged)
def properties_changed(event: c.PropertiesChanged) -> None:
    Properties.parse(event.properties)
