"""Keeps Python's collector of circles away from the records of a cycle: they live until its end, and are none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_rest() -> Iterator[None]:
    """Within this block nothing is collected. It looks at every object that has survived so far, again and again.

    Who has it on before has it on afterwards, with any number of members in one process: each that found it on turns
    it on again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
