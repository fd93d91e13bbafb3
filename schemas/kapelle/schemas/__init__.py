"""Avro contracts: their types, their bytes, and how both may change."""

from kapelle.schemas.catalog import Catalog
from kapelle.schemas.codec import RECORD_BYTES_MAX, Codec, Confluent, Framing, SingleObject
from kapelle.schemas.compatibility import Direction, Incompatibility, compatible
from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import (
    BadCatalog,
    BadHeader,
    BadSchema,
    Corrupt,
    NotEncodable,
    RecordTooLarge,
    SchemaError,
    Truncated,
    UnknownContract,
    UnknownFingerprint,
    UnknownSchemaId,
    Unresolvable,
)

__all__ = [
    "RECORD_BYTES_MAX",
    "BadCatalog",
    "BadHeader",
    "BadSchema",
    "Catalog",
    "Codec",
    "Confluent",
    "Contract",
    "Corrupt",
    "Direction",
    "Framing",
    "Incompatibility",
    "NotEncodable",
    "RecordTooLarge",
    "SchemaError",
    "SingleObject",
    "Truncated",
    "UnknownContract",
    "UnknownFingerprint",
    "UnknownSchemaId",
    "Unresolvable",
    "compatible",
]
