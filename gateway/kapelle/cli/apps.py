"""The topology that --app names: MODULE:ATTRIBUTE, where the attribute is a Topology or a function that gives one."""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Final

from kapelle.cli.errors import AppFailed, AppMissing, BadReference, NotATopology, with_line
from kapelle.processors.errors import ProcessorError
from kapelle.topology.build import Topology
from kapelle.topology.errors import TopologyError

DEFAULT_APP: Final = "kapelle.topology.page:topology"

_REFERENCE: Final = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")


def load_topology(reference: str, *, prefix: str | None = None, partitions: int | None = None) -> Topology:
    """Import and, if it is a function, call what is named, with those of the options that were given."""
    matched = _REFERENCE.fullmatch(reference)
    if matched is None:
        raise BadReference(f"Expected --app MODULE:ATTRIBUTE such as {DEFAULT_APP}, but found {reference!r}")
    module, attribute = matched.groups()
    declared = attribute_of(module_of(module), module, attribute)
    given = {name: value for name, value in (("prefix", prefix), ("partitions", partitions)) if value is not None}
    made = declared if isinstance(declared, Topology) else _called(declared, reference, given)
    if isinstance(declared, Topology) and given:
        raise NotATopology(
            f"Expected {reference} to be a function, because {_flags(given)} was given, but it is a Topology: "
            "it has its prefix and partitions already"
        )
    return made


def module_of(name: str) -> ModuleType:
    """A module, which may be in the current folder."""
    here = str(Path.cwd())
    if here not in sys.path:  # an installed command does not have the current folder on its path, and `python -m` does
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise AppFailed(f"Module {name} could not be imported: {with_line(error)}") from error
        raise AppMissing(f"Expected a module {name}, but there is no {error.name} in {here} or installed") from error
    except (TopologyError, ProcessorError):
        raise  # they say what is wrong with the topology
    except Exception as error:
        raise AppFailed(f"Module {name} could not be imported: {with_line(error)}") from error


def module_at(file: Path) -> ModuleType:
    """A module in a file: this one, whatever other modules have its name. It may import what lies beside it."""
    path = file.resolve()
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = file.stem if known is None else str(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AppMissing(f"Expected {file} to be a Python module, but it is not")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception):
            raise AppFailed(f"{file} could not be imported: {with_line(error)}") from error
        raise
    return made


def attribute_of(module: ModuleType, name: str, attribute: str) -> object:
    """What a module has under a name, dotted or not."""
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise AppMissing(
            f"Expected {attribute!r} in module {name} ({module.__file__}), but it does not exist"
        ) from error


def _called(function: object, reference: str, given: Mapping[str, str | int]) -> Topology:
    if not callable(function):
        raise NotATopology(
            f"Expected {reference} to be a Topology or a function that gives one, but found {type(function).__name__}"
        )
    try:
        inspect.signature(function).bind(**given)
    except (TypeError, ValueError) as error:
        how = f"with {_flags(given)}" if given else "without arguments"
        raise NotATopology(f"Expected to call {reference} {how}, but the call is not possible: {error}") from error
    try:
        made = function(**given)
    except (TopologyError, ProcessorError):
        raise
    except Exception as error:
        raise AppFailed(f"{reference} raised {with_line(error)}") from error
    if not isinstance(made, Topology):
        raise NotATopology(f"Expected {reference} to give a Topology, but it gave {type(made).__name__}")
    return made


def _flags(given: Mapping[str, str | int]) -> str:
    return " and ".join(f"--{name}" for name in given)
