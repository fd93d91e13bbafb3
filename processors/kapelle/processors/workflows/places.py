"""The place of a breakpoint in its table: all that says which attempts it is for."""

from typing import Protocol

Place = tuple[str, str, int, int, int, int]  # workflow, step, version, instance id, run id, attempt; 0 for all of them


class Precise(Protocol):
    """A breakpoint, or a request about one."""

    @property
    def step_id(self) -> str: ...

    @property
    def version(self) -> int | None: ...

    @property
    def instance_id(self) -> int | None: ...

    @property
    def run_id(self) -> int | None: ...

    @property
    def attempt(self) -> int | None: ...


def place_of(key: str, of: Precise) -> Place:
    """Breakpoints with the same fields have the same place."""
    return (key, of.step_id, of.version or 0, of.instance_id or 0, of.run_id or 0, of.attempt or 0)
