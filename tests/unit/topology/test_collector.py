"""Python's collector rests while a cycle is under way, and nobody finds it other than it was."""

import gc
from collections.abc import Iterator

import pytest

from kapelle.topology.collector import at_rest


@pytest.fixture(autouse=True)
def _on() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_the_collector_rests_within_the_block_and_goes_on_after_it() -> None:
    with at_rest():
        rested = not gc.isenabled()

    assert rested
    assert gc.isenabled()


def test_the_collector_goes_on_after_a_block_that_failed() -> None:
    with pytest.raises(ZeroDivisionError), at_rest():
        raise ZeroDivisionError

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()

    with at_rest():
        pass

    assert not gc.isenabled()


def test_the_collector_goes_on_when_two_blocks_overlap() -> None:
    first, second = at_rest(), at_rest()

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)

    assert gc.isenabled()
