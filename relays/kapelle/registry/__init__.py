"""Schemas of public topics in a registry: asking one, filling one, and a small one for development."""

from kapelle.registry.client import RegistryClient
from kapelle.registry.contracts import PublicSchemas, Standing
from kapelle.registry.server import RegistryServer
from kapelle.registry.subjects import Level, Subjects

__all__ = ["Level", "PublicSchemas", "RegistryClient", "RegistryServer", "Standing", "Subjects"]
