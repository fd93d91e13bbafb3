"""The worker that a command names: MODULE, MODULE:ATTRIBUTE, or the path of a file."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from kapelle.cli.apps import attribute_of, module_at, module_of
from kapelle.cli.errors import AppFailed, AppMissing, BadReference, NotAWorker

if TYPE_CHECKING:
    from kapelle.worker import Worker

NAME: Final = "worker"  # what a worker is called, where a module has several

_NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE: Final = re.compile(rf"({_NAME}|.+\.py)(?::({_NAME}))?")


def load_workers(references: Sequence[str]) -> "Worker":
    """All steps of the named workers, as one."""
    from kapelle.worker import BadStep, Worker  # noqa: PLC0415 - slow to import

    whole = Worker()
    try:
        for reference in references:
            whole.include(load_worker(reference))
    except BadStep as error:
        raise NotAWorker(str(error)) from error
    return whole


def load_worker(reference: str) -> "Worker":
    """Import what is named."""
    from kapelle.worker import BadStep  # noqa: PLC0415 - slow to import

    module, attribute = _named(reference)
    try:
        loaded = module_at(Path(module)) if module.endswith(".py") else module_of(module)
    except AppFailed as error:
        if isinstance(error.__cause__, BadStep):  # it says what is wrong with the step
            raise NotAWorker(f"{error.__cause__} (in {module})") from error
        raise
    return _only(loaded, module) if attribute is None else _worker(attribute_of(loaded, module, attribute), reference)


def _named(reference: str) -> tuple[str, str | None]:
    matched = _REFERENCE.fullmatch(reference)
    if matched is None:
        raise BadReference(f"Expected MODULE, MODULE:WORKER or a file such as steps.py, but found {reference!r}")
    module, attribute = matched.groups()
    if module.endswith(".py") and not Path(module).is_file():
        raise AppMissing(f"Expected a file {module}, but it does not exist")
    return module, attribute


def _only(module: ModuleType, name: str) -> "Worker":
    """The worker of a module: the one called so, or the only one there is."""
    from kapelle.worker import Worker  # noqa: PLC0415 - slow to import

    workers = {key: value for key, value in vars(module).items() if isinstance(value, Worker)}
    if NAME in workers:
        return _worker(workers[NAME], name)
    if len(workers) != 1:
        what = f"{len(workers)}: say which with {name}:NAME" if workers else "none"
        raise NotAWorker(f"Expected a Worker in {_kind(name)}{name}, but found {what}")
    return _worker(next(iter(workers.values())), name)


def _kind(name: str) -> str:
    return "" if name.endswith(".py") else "module "


def _worker(worker: object, reference: str) -> "Worker":
    from kapelle.worker import Worker  # noqa: PLC0415 - slow to import

    if not isinstance(worker, Worker):
        raise NotAWorker(f"Expected {reference} to be a Worker, but found {type(worker).__name__}")
    if not worker.steps:
        raise NotAWorker(
            f"Expected a worker with steps in {reference}, but it has none: decorate a function with @worker.step(type)"
        )
    return worker
