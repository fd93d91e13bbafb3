"""The catalog of a process: the contract types that it reads and writes, and every schema that others write with."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType

from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import BadCatalog, BadSchema, UnknownContract, UnknownFingerprint, UnknownSchemaId
from kapelle.schemas.model import Record, fingerprint, to_json
from kapelle.schemas.parsing import parse
from kapelle.schemas.reading import reader_as

Source = ModuleType | type[Contract]
Read = Callable[[bytes, int], tuple[Contract, int]]


class Catalog:
    """Contract types by full name, and writers' schemas by fingerprint and by registry id."""

    def __init__(self, contracts: Iterable[type[Contract]] = ()) -> None:
        self._contracts: dict[str, type[Contract]] = {}
        self._current: dict[int, type[Contract]] = {}  # by the fingerprint of today's schema
        self._schemas: dict[int, str] = {}
        self._fingerprints: dict[int, int] = {}
        for contract in contracts:
            self._add(contract)

    @classmethod
    def of(cls, *sources: Source) -> "Catalog":
        """The contracts of generated modules, and contracts by themselves."""
        return cls(contract for source in sources for contract in _contracts_of(source))

    def __or__(self, other: "Catalog") -> "Catalog":
        both = Catalog([*self, *other])
        both._schemas |= self._schemas | other._schemas
        both._fingerprints |= self._fingerprints | other._fingerprints
        return both

    def __iter__(self) -> Iterator[type[Contract]]:
        return iter(self._contracts.values())

    def __contains__(self, contract: object) -> bool:
        return contract in self._contracts.values()

    @property
    def schemas(self) -> Mapping[int, str]:
        """Every known schema by its fingerprint."""
        return self._schemas

    def learn(self, schema_json: str, *, schema_id: int | None = None) -> int:
        """Take up a schema that somebody writes with; tells its fingerprint. `schema_id` is its id in a registry."""
        schema = _parse_record(schema_json)
        number = fingerprint(schema)
        self._schemas.setdefault(number, to_json(schema))
        if schema_id is not None:
            self._fingerprints[schema_id] = number
        return number

    def fingerprint_of(self, schema_id: int) -> int:
        """The fingerprint of the schema with this id in the registry."""
        try:
            return self._fingerprints[schema_id]
        except KeyError:
            raise UnknownSchemaId(schema_id) from None

    def known_ids(self) -> Mapping[int, int]:
        """For each id in the registry that is known the fingerprint of its schema. Several may be of the same."""
        return dict(self._fingerprints)

    def schema_ids(self) -> Mapping[int, int]:
        """For each fingerprint its newest id in the registry."""
        return {number: schema_id for schema_id, number in sorted(self._fingerprints.items())}

    def reader(self, written: int) -> tuple[Read, str]:
        """How to read what was written with the schema of this fingerprint, and the full name of what it becomes."""
        current = self._current.get(written)
        if current is not None:
            return current.from_avro, current.FULL_NAME
        return self.careful_reader(written)

    def careful_reader(self, written: int) -> tuple[Read, str]:
        """The same, made of the schemas alone: slower, and it says of every wrong byte what is wrong with it."""
        schema_json = self._schemas.get(written)
        if schema_json is None:
            raise UnknownFingerprint(written)
        writer = _parse_record(schema_json)
        contract = self._contract_for(writer.name)
        return reader_as(contract, writer, _parse_record(contract.SCHEMA)), contract.FULL_NAME

    def _contract_for(self, full_name: str) -> type[Contract]:
        if full_name in self._contracts:
            return self._contracts[full_name]
        for contract in self:
            if full_name in _parse_record(contract.SCHEMA).aliases:
                return contract
        raise UnknownContract(full_name)

    def _add(self, contract: type[Contract]) -> None:
        known = self._contracts.setdefault(contract.FULL_NAME, contract)
        if known is not contract:
            raise BadCatalog(
                f"Expected one type for {contract.FULL_NAME}, but found {known.__module__}.{known.__name__} "
                f"and {contract.__module__}.{contract.__name__}"
            )
        self._current[contract.FINGERPRINT] = contract
        self._schemas[contract.FINGERPRINT] = contract.SCHEMA
        for schema_json in contract.EARLIER:
            self.learn(schema_json)


def _contracts_of(source: Source) -> list[type[Contract]]:
    if isinstance(source, type):
        return [source]
    # A module may have imported contracts of others: it speaks only for its own.
    own = [v for v in vars(source).values() if isinstance(v, type) and v.__module__ == source.__name__]
    return [v for v in own if issubclass(v, Contract)]


def _parse_record(schema_json: str) -> Record:
    record = parse(schema_json)
    if not isinstance(record, Record):
        raise BadSchema("schema", "expected a record")
    return record
