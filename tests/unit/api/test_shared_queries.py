"""Shared looks: many who ask the same of one state of the view cost one look."""

import asyncio
import sqlite3

import pytest

from kapelle.api import ApiSettings
from kapelle.api.context import Context
from kapelle.api.shared_queries import KEPT_MAX, SharedQueries
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import Views
from tests.unit.views.histories import definition


class Counted:
    """A query that counts how often it is asked, and fails at first if it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.count = 0
        self.failures = failures

    def __call__(self, connection: sqlite3.Connection) -> int:
        self.count += 1
        if self.count <= self.failures:
            raise OSError("not now")
        found: int = connection.execute("SELECT COUNT(*) FROM workflows").fetchone()[0]
        return found


def made() -> tuple[Engine, Views, Context]:
    engine = Engine()
    journal = EmbeddedJournal(engine.runtime)
    views = Views(journal)
    return engine, views, Context(journal, views, ApiSettings())


def test_a_hundred_at_once_are_one_look_and_a_new_state_is_another() -> None:
    engine, views, here = made()
    query = Counted()

    async def ask() -> list[set[int]]:
        looks = SharedQueries(here)
        before = await asyncio.gather(*[looks.ask("workflows", query) for _ in range(100)])
        engine.push(definition("etl"))
        views.folding.step()
        after = await asyncio.gather(*[looks.ask("workflows", query) for _ in range(100)])
        return [set(before), set(after)]

    assert asyncio.run(ask()) == [{0}, {1}]
    assert query.count == 2


def test_a_look_that_failed_is_tried_again_and_one_that_was_given_up_is_finished_for_others() -> None:
    _, _, here = made()
    query = Counted(failures=1)

    async def ask() -> int:
        looks = SharedQueries(here)
        with pytest.raises(OSError, match="not now"):
            await looks.ask("workflows", query)
        given_up = asyncio.ensure_future(looks.ask("workflows", query))
        await asyncio.wait([given_up], timeout=0)
        given_up.cancel()
        return await looks.ask("workflows", query)

    assert asyncio.run(ask()) == 0
    assert query.count == 2


def test_no_more_is_kept_than_a_bound() -> None:
    _, _, here = made()

    async def ask() -> int:
        looks = SharedQueries(here)
        for name in range(KEPT_MAX + 10):
            await looks.ask(name, Counted())
        return len(looks._known)

    assert asyncio.run(ask()) <= KEPT_MAX
