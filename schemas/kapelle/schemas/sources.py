"""Reading a directory of `.avsc` files: one contract or shared type each, which may use the others by name."""

from pathlib import Path

from kapelle.schemas.errors import BadSchema
from kapelle.schemas.model import Enum, Named, Record
from kapelle.schemas.parsing import Parser, load_json


def read_sources(directory: Path) -> tuple[Named, ...]:
    """The types that the files of a directory define, in the order of their file names."""
    return _Sources(directory).read()


class _Sources:
    def __init__(self, directory: Path) -> None:
        files = sorted(directory.glob("*.avsc"))
        if not files:
            raise BadSchema(str(directory), "expected a directory of .avsc files, but found none")
        self._files: dict[str, tuple[str, object]] = {}
        for file in files:
            plain = load_json(file.read_text(), file.name)
            self._files[_full_name(plain, file)] = file.name, plain
        self._found: dict[str, Named] = {}
        self._open: list[str] = []

    def read(self) -> tuple[Named, ...]:
        return tuple(self._get(full_name) for full_name in self._files)

    def _lookup(self, full_name: str) -> Named | None:
        return self._get(full_name) if full_name in self._files else None

    def _get(self, full_name: str) -> Named:
        if full_name in self._found:
            return self._found[full_name]
        where, plain = self._files[full_name]
        if full_name in self._open:
            raise BadSchema(where, f"expected types that do not contain themselves, but found {self._open}")
        self._open.append(full_name)
        type_ = Parser(where, strict=True, lookup=self._lookup).parse(plain)
        self._open.pop()
        if not isinstance(type_, Record | Enum):
            raise BadSchema(where, "expected a record or an enum")
        self._found[full_name] = type_
        return type_


def _full_name(plain: object, file: Path) -> str:
    match plain:
        case {"name": str(name), "namespace": str(namespace)} if name == file.stem and namespace:
            return f"{namespace}.{name}"
    raise BadSchema(file.name, f"expected a record or an enum with a namespace and the name {file.stem}")
