"""Errors of schemas, values and bytes, by who must act.

    SchemaError
    ├── caller: who wrote the contract, or the value
    │   ├── BadSchema           a schema that is not Avro, or uses what contracts may not
    │   ├── BadCatalog          two types claim one name
    │   └── NotEncodable        a value that does not fit its contract
    ├── operator: who runs a mixed set of versions
    │   ├── UnknownFingerprint  written with a schema that is not known here: read the schema topic
    │   ├── UnknownSchemaId     the same, by its id in a Schema Registry
    │   ├── UnknownContract     the schema is known, but no type here reads it
    │   └── Unresolvable        the schema is known, but this record cannot be read as the current type
    └── runtime: who must set the record aside and go on
        ├── Corrupt             bytes that no writer of that schema makes
        ├── Truncated           bytes that end too early
        ├── RecordTooLarge      more bytes than a record may have, read or written
        └── BadHeader           a header that breaks its standard

`Codec.decode` raises nothing else, whatever the bytes are.
"""


class SchemaError(Exception):
    """Anything wrong with a schema, a value or some bytes."""


class BadSchema(SchemaError):
    """A schema that cannot serve. `where` names the file or the schema and the field."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class BadCatalog(SchemaError):
    """Types that cannot stand in one catalog."""


class NotEncodable(SchemaError):
    """A value that does not fit its contract."""

    def __init__(self, contract: str, field: str, *, expected: str, found: str) -> None:
        at = f"{contract}.{field}" if field else contract
        super().__init__(f"Expected {expected} in {at}, but found {found}")
        self.contract = contract
        self.field = field
        self.expected = expected
        self.found = found


class UnknownFingerprint(SchemaError):
    """Written with a schema that nobody has told this process about."""

    def __init__(self, fingerprint: int) -> None:
        super().__init__(
            f"Expected a known schema, but found fingerprint {fingerprint:016x}: "
            "its writer must publish it to the schema topic"
        )
        self.fingerprint = fingerprint


class UnknownSchemaId(SchemaError):
    """Written with a registry id that nobody has told this process about."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(f"Expected a known schema id, but found {schema_id}: ask the Schema Registry for it")
        self.schema_id = schema_id


class UnknownContract(SchemaError):
    """Written with a known schema, for which this process has no type."""

    def __init__(self, full_name: str) -> None:
        super().__init__(f"Expected a record of a type in the catalog, but found {full_name}")
        self.full_name = full_name


class Unresolvable(SchemaError):
    """Written with a known schema, but the current type cannot take what this record holds."""

    def __init__(self, contract: str, reason: str) -> None:
        super().__init__(f"Expected to read the record as {contract}, but {reason}")
        self.contract = contract
        self.reason = reason


class Corrupt(SchemaError):
    """Bytes that no writer of that schema makes."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"Expected {expected}, but found {found}")
        self.expected = expected
        self.found = found


class Truncated(SchemaError):
    """Bytes that end too early."""

    def __init__(self, contract: str, size_bytes: int) -> None:
        super().__init__(f"Expected the rest of {contract}, but the record ends after {size_bytes} bytes")
        self.contract = contract
        self.size_bytes = size_bytes


class RecordTooLarge(SchemaError):
    """More bytes than a record may have."""

    def __init__(self, contract: str, size_bytes: int, record_bytes_max: int) -> None:
        super().__init__(f"Expected at most {record_bytes_max} bytes in {contract}, but found {size_bytes}")
        self.contract = contract
        self.size_bytes = size_bytes
        self.record_bytes_max = record_bytes_max


class BadHeader(SchemaError):
    """A header that breaks its standard."""

    def __init__(self, name: str, *, expected: str, found: bytes | str) -> None:
        super().__init__(f"Expected {expected} in header {name!r}, but found {found!r}")
        self.name = name
        self.expected = expected
        self.found = found
