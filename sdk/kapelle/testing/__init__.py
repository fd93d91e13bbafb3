"""The test kit for users: the engine in memory on a virtual clock, assertions that explain themselves, crash points.

Names are imported when they are first used: pytest loads this package in every project that has Kapelle installed.
"""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kapelle.testing.assertions import assert_event, assert_not_run, assert_run, assert_step, told
    from kapelle.testing.breakpoints import BreakpointHandle
    from kapelle.testing.engine import Engine, Refused, RunHandle, TaskHandle
    from kapelle.testing.schedules import BackfillHandle, Schedules, Tick

__all__ = [
    "BackfillHandle",
    "BreakpointHandle",
    "Engine",
    "Refused",
    "RunHandle",
    "Schedules",
    "TaskHandle",
    "Tick",
    "assert_event",
    "assert_not_run",
    "assert_run",
    "assert_step",
    "told",
]

_HOMES: Final = {
    **dict.fromkeys(("assert_event", "assert_not_run", "assert_run", "assert_step", "told"), "assertions"),
    "BreakpointHandle": "breakpoints",
    **dict.fromkeys(("BackfillHandle", "Schedules", "Tick"), "schedules"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'engine')}"), name)
