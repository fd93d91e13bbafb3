"""Untrusted expressions end in a typed error, soon and small."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kapelle.processors.sel import Limits, Sel, SelError, seeded
from tests.unit.sel.attacks import ATTACKS

# A five-hundredth of the default work and a twelfth of the default memory: the defaults allow seconds, tests do not.
SCALED = Limits(expression_chars=2_000, visits=200_000, memory_bytes=8_000_000)
CPU_SECONDS_MAX = 0.250
BYTES_MAX = 64 << 20
REPOSITORY = Path(__file__).resolve().parents[3]
CONFINED = f"""
import resource
from tests.unit.sel.test_attacks import ATTACKS, outcome
outcome("DateTimeZone.forID('nowhere')")
outcome("'a'.split('(')")
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + {BYTES_MAX},) * 2)
print("confined", sum(outcome(attack) is not None for attack in ATTACKS))
"""
NOW_MS = 1_700_000_000_000


def attack_ids() -> list[str]:
    return [f"{number}-{ascii(attack)[1:31]}" for number, attack in enumerate(ATTACKS)]


def outcome(attack: str) -> SelError | None:
    """The error of an attack, None if it gave a value; anything else is raised."""
    try:
        Sel(SCALED).evaluate(attack, {}, seeded("attack", NOW_MS))
    except SelError as error:
        return error
    return None


def timed(attack: str) -> tuple[SelError | None, float]:
    began = time.thread_time()
    error = outcome(attack)
    return error, time.thread_time() - began


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Grammar, zones and patterns are loaded once for a process, not once for an attack."""
    outcome("DateTimeZone.forID('nowhere')")
    outcome("'a'.split('(')")


def test_there_are_at_least_three_hundred_different_attacks() -> None:
    assert len(set(ATTACKS)) >= 300


@pytest.mark.parametrize("attack", ATTACKS, ids=attack_ids())
def test_an_attack_ends_in_a_typed_error_within_a_quarter_second_of_cpu(attack: str) -> None:
    error, spent = timed(attack)
    for _ in range(2):
        # A collection of this process's garbage may fall into any measurement: what counts is the best of three.
        spent = spent if spent < CPU_SECONDS_MAX else min(spent, timed(attack)[1])

    assert error is not None
    assert spent < CPU_SECONDS_MAX
    assert len(str(error)) < 20_000
    assert error.rendered()


def test_no_attack_takes_more_than_64_mebibytes() -> None:
    # A process of its own whose address space the kernel bounds: what RE2 takes is counted too.
    finished = subprocess.run(
        [sys.executable, "-c", CONFINED], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert finished.returncode == 0, finished.stderr[-2000:]
    assert finished.stdout.split() == ["confined", str(len(ATTACKS))]


def test_an_evaluation_deep_in_the_callers_stack_is_still_a_typed_error() -> None:
    nested = "(1+" * 120 + "1" + ")" * 120
    program = Sel().program(nested)

    def descend(levels: int) -> str:
        if levels:
            return descend(levels - 1)
        try:
            return str(program.evaluate().value)
        except SelError as error:
            return error.kind

    answers = {descend(sys.getrecursionlimit() - room) for room in (150, 200, 300, 600)}

    assert answers <= {"121", "LimitExceeded"}
