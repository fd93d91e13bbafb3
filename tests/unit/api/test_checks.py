"""Definitions are checked one at a time: others wait for their turn, and too many are asked to come back."""

import asyncio
import sys
import threading

import pytest

from kapelle.api.checks import WAITING_MAX, Checks
from kapelle.api.problems import Unavailable, problem_response
from tests.integration.api.places import Place, definition


class Slow:
    """A check that ends when it is let go, and knows how many ran at a time."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.running = 0
        self.most = 0

    def __call__(self, number: int) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.set()
        self.go.wait()
        self.running -= 1
        return number


async def asked(checks: Checks, slow: Slow, count: int) -> list[asyncio.Task[int]]:
    """So many checks, of which the first one has begun."""
    tasks = [asyncio.create_task(checks.run(slow, number)) for number in range(count)]
    await asyncio.to_thread(slow.begun.wait)
    return tasks


def test_checks_run_one_at_a_time_and_each_gets_its_own_answer() -> None:
    async def run() -> list[int]:
        checks, slow = Checks(), Slow()
        tasks = await asked(checks, slow, 4)
        slow.go.set()
        answers = await asyncio.gather(*tasks)
        assert slow.most == 1
        return answers

    assert asyncio.run(run()) == [0, 1, 2, 3]


def test_when_too_many_wait_the_next_is_refused_and_may_come_back() -> None:
    async def run() -> Unavailable:
        checks, slow = Checks(), Slow()
        tasks = await asked(checks, slow, WAITING_MAX + 1)
        with pytest.raises(Unavailable, match="to wait for their check") as caught:
            await checks.run(slow, 99)
        slow.go.set()
        await asyncio.gather(*tasks)
        assert await checks.run(slow, 100) == 100
        return caught.value

    answer = problem_response(asyncio.run(run()))

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


def test_a_check_leaves_the_interval_of_threads_as_it_was_also_when_it_fails() -> None:
    def failing() -> None:
        raise ValueError("it fails")

    before = sys.getswitchinterval()

    with pytest.raises(ValueError, match="it fails"):
        asyncio.run(Checks().run(failing))

    assert sys.getswitchinterval() == before


def test_a_definition_whose_texts_grow_tenfold_is_refused_by_validate_with_the_parameter(api: Place) -> None:
    body = definition("growing")
    params = {"p0": {"type": "STRING", "value": "x" * 1000}}
    params |= {f"p{n}": {"type": "STRING", "value": f"${{p{n - 1}}}" * 10} for n in range(1, 8)}
    body["workflow"]["params"] = params

    answer = api.call("PUT", "/workflows/actions/validate", 400, json=body)

    (error,) = answer["errors"]
    assert error.startswith("workflow.params.p3:")
    assert "750,000 characters" in error
    assert api.call("POST", "/workflows", 400, json=body)["errors"] == [error]
