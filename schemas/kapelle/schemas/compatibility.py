"""Whether a contract may change as it did: readers of the new schema and the old one can read each other's records."""

from enum import StrEnum
from pathlib import Path

import msgspec

from kapelle.schemas.model import Named, Record, Type
from kapelle.schemas.parsing import parse
from kapelle.schemas.released import Version, read_released
from kapelle.schemas.resolution import Rule, refusals, resolve
from kapelle.schemas.sources import read_sources


class Direction(StrEnum):
    """Who reads whose records."""

    BACKWARD = "the new reads the old"
    FORWARD = "the old reads the new"


FULL = (Direction.BACKWARD, Direction.FORWARD)


class Incompatibility(msgspec.Struct, frozen=True):
    """One place where a change breaks a rule."""

    direction: Direction
    path: str
    rule: Rule
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail} ({self.direction.name}: {self.direction}; {self.rule.name}: {self.rule})"


class Violation(msgspec.Struct, frozen=True):
    """A current contract that a released version forbids."""

    full_name: str
    version: int
    reason: str

    def __str__(self) -> str:
        return f"{self.full_name} against version {self.version}: {self.reason}"


def compatible(old_schema: str, new_schema: str, directions: tuple[Direction, ...] = FULL) -> list[Incompatibility]:
    """What breaks when `old_schema` becomes `new_schema`; nothing, if all is well."""
    return _compatible(parse(old_schema), parse(new_schema), directions)


def _compatible(old: Type, new: Type, directions: tuple[Direction, ...]) -> list[Incompatibility]:
    pairs = {Direction.BACKWARD: (old, new), Direction.FORWARD: (new, old)}
    return [
        Incompatibility(direction, refused.path, refused.rule, refused.detail)
        for direction in directions
        for refused in refusals(resolve(*pairs[direction]))
    ]


def violations(source: Path, released: Path) -> list[Violation]:
    """Every current contract against every released version of it, both ways."""
    current = {of.name: of for of in read_sources(source)}
    breaches: list[Violation] = []
    for full_name, versions in read_released(released).items():
        contract = _contract_for(full_name, current)
        if contract is None:
            breaches.append(Violation(full_name, versions[-1].number, "expected the contract to stay, but it is gone"))
            continue
        for version in versions:
            breaches += _violations(version, contract)
    return breaches


def _contract_for(full_name: str, current: dict[str, Named]) -> Record | None:
    """The contract of that name, or the one that has taken it as an alias."""
    candidates = (of for of in current.values() if full_name in (of.name, *of.aliases))
    return next((of for of in candidates if isinstance(of, Record)), None)


def _violations(version: Version, contract: Record) -> list[Violation]:
    # An old reader cannot know a new name, so a renamed contract is only asked to read the old records.
    directions = FULL if version.of.name == contract.name else (Direction.BACKWARD,)
    broken = _compatible(version.of, contract, directions)
    return [Violation(contract.name, version.number, str(incompatibility)) for incompatibility in broken]
