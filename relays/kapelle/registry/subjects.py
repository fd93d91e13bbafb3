"""The content of a registry: schemas by id, the versions of each subject, and how subjects may change.

The rules are those of Confluent's API: an id is for a schema, whatever subjects have it; a version counts within its
subject; what is refused has an error code of five digits, of which the first three are the status of HTTP.
"""

import json
import threading
from enum import StrEnum
from typing import Final

import msgspec

from kapelle.schemas.compatibility import Direction, compatible
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.parsing import parse

SUBJECTS_MAX: Final = 10_000
LATEST: Final = "latest"


class Level(StrEnum):
    """Which schemas a new version of a subject must get along with, and how."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(direction for direction in Direction if self.startswith((direction.name, "FULL")))

    @property
    def is_transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")


class Refused(Exception):
    """The registry's answer to what it cannot do."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Registered(msgspec.Struct, frozen=True):
    """One version of a subject."""

    subject: str
    id: int
    version: int
    schema: str


class Subjects:
    """All that one registry knows, in memory. Requests come from several threads."""

    def __init__(self, level: Level = Level.BACKWARD) -> None:
        self._lock = threading.RLock()
        self._ids: dict[str, int] = {}
        self._versions: dict[str, list[Registered]] = {}
        self._levels: dict[str, Level] = {}
        self._level = level

    def register(self, subject: str, schema: str) -> int:
        """Add a version, unless the subject has the schema already; tells the schema's id."""
        text = _normal(schema)
        with self._lock:
            versions = self._versions.get(subject, [])
            known = next((version for version in versions if version.schema == text), None)
            if known is not None:
                return known.id
            if problems := self.problems(subject, text):
                raise Refused(409, f"Schema being registered is incompatible with an earlier schema: {problems[0]}")
            if subject not in self._versions and len(self._versions) >= SUBJECTS_MAX:
                raise Refused(50001, f"Expected at most {SUBJECTS_MAX} subjects")
            number = self._ids.setdefault(text, len(self._ids) + 1)
            version = versions[-1].version + 1 if versions else 1
            self._versions.setdefault(subject, []).append(Registered(subject, number, version, text))
            return number

    def lookup(self, subject: str, schema: str) -> Registered:
        """The version of a subject that is this schema."""
        text = _normal(schema)
        for version in self._of(subject):
            if version.schema == text:
                return version
        raise Refused(40403, "Schema not found")

    def version(self, subject: str, version: str) -> Registered:
        versions = self._of(subject)
        if version in (LATEST, "-1"):
            return versions[-1]
        if not version.isdecimal() or int(version) < 1:
            raise Refused(42202, f"The specified version '{version}' is not a valid version id")
        for entry in versions:
            if entry.version == int(version):
                return entry
        raise Refused(40402, f"Version {version} not found.")

    def by_id(self, number: int) -> str:
        with self._lock:
            for text, known in self._ids.items():
                if known == number:
                    return text
        raise Refused(40403, f"Schema {number} not found")

    def subjects(self) -> list[str]:
        with self._lock:
            return sorted(self._versions)

    def versions(self, subject: str) -> list[int]:
        return [version.version for version in self._of(subject)]

    def delete(self, subject: str) -> list[int]:
        with self._lock:
            deleted = self.versions(subject)
            del self._versions[subject]
            return deleted

    def level(self, subject: str | None = None) -> Level:
        """The level of a subject, or that of all which have none of their own."""
        with self._lock:
            return self._level if subject is None else self._levels.get(subject, self._level)

    def set_level(self, level: str, subject: str | None = None) -> Level:
        if level not in Level.__members__:
            raise Refused(42203, f"Invalid compatibility level: expected one of {', '.join(Level)}")
        with self._lock:
            if subject is None:
                self._level = Level(level)
            else:
                self._levels[subject] = Level(level)
        return Level(level)

    def problems(self, subject: str, schema: str, version: str | None = None) -> list[str]:
        """What is wrong with a schema as the next version of a subject; with one of its versions, if that is given."""
        text, level = _normal(schema), self.level(subject)
        with self._lock:
            versions = list(self._versions.get(subject, []))
        against = versions if level.is_transitive else versions[-1:]
        if version is not None:
            against = [self.version(subject, version)]
        return [
            f"version {version.version}: {problem}"
            for version in against
            for problem in compatible(version.schema, text, level.directions)
        ]

    def _of(self, subject: str) -> list[Registered]:
        with self._lock:
            if subject not in self._versions:
                raise Refused(40401, f"Subject '{subject}' not found.")
            return list(self._versions[subject])


def _normal(schema: str) -> str:
    """One way to write a schema, so that spaces make no difference."""
    try:
        parse(schema)
        return json.dumps(json.loads(schema), separators=(",", ":"))
    except (SchemaError, ValueError, RecursionError) as error:
        raise Refused(42201, f"Invalid schema: {error}") from None
