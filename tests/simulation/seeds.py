"""Which seeds are run, in pieces, so that two processes can share them: every second piece is in a file of its own."""

import os

from tests.proof.simulate import simulate

SEEDS = int(os.environ.get("KAPELLE_SIMULATION_SEEDS", "10000"))
FIRST = int(os.environ.get("KAPELLE_SIMULATION_FIRST", "0"))
PIECE_SEEDS = 250

PIECES = [range(first, min(first + PIECE_SEEDS, FIRST + SEEDS)) for first in range(FIRST, FIRST + SEEDS, PIECE_SEEDS)]


def named(seeds: range) -> str:
    return f"{seeds.start}-{seeds.stop - 1}"


def check(seeds: range) -> None:
    """Every history of these seeds is exactly once and in order; those that are not are named, with what is wrong."""
    failures = [f"seed {seed}: {problems[:3]}" for seed in seeds if (problems := _problems_of(seed))]

    assert not failures, f"{len(failures)} of {len(seeds)} seeds failed; simulate(seed) shows it again:\n" + "\n".join(
        failures[:5]
    )


def _problems_of(seed: int) -> list[str]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    try:
        return simulate(seed)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return [f"{type(error).__name__}: {error}"]
