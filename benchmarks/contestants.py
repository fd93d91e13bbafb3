"""The runtimes that are compared: how each is started, and the route of its records."""

import sys
from dataclasses import replace

from benchmarks import ours
from benchmarks.harness import Place
from benchmarks.peers import environment
from benchmarks.routes import COUNTING, Route
from benchmarks.throughput import Command
from benchmarks.workload import TICK

STAGES = {True: "same_cycle", False: "by_topic"}  # four processors in a row, by whether delivery is within the cycle
ROUTES = {
    "ours": ours.TICKS,
    **dict.fromkeys(STAGES.values(), ours.STAGES),
    # It copies and does not count: its outputs are ticks.
    "bare": replace(COUNTING, identify=lambda message: str(TICK.decode(message.value())["id"])),
}


def commands(protocol: str) -> dict[str, Command]:
    """How to start each runtime. The group protocol is for those of ours; the others have their own."""

    def stages(same_cycle: bool) -> Command:
        return lambda place: ours.command(place, protocol=protocol, processors="stages", same_cycle=same_cycle)

    return {
        **{name: stages(same_cycle) for same_cycle, name in STAGES.items()},
        "ours": lambda place: ours.command(place, protocol=protocol),
        "handwritten": lambda place: python_peer("handwritten", place, "--protocol", protocol),
        "bare": lambda place: python_peer("bare", place, "--protocol", protocol),
        "kafka_streams": lambda place: [*environment.kafka_streams(), *place.arguments()],
        "quix": lambda place: foreign_peer("quix", place),
        "faust": lambda place: foreign_peer("faust_app", place),
    }


def prepare(name: str) -> None:
    """Install what this runtime needs, before anything is timed."""
    if name == "kafka_streams":
        environment.kafka_streams()
    elif name in ("quix", "faust"):
        environment.python()


def route(name: str) -> Route:
    return ROUTES.get(name, COUNTING)


def python_peer(module: str, place: Place, *more: str) -> list[str]:
    """A peer that needs only the packages of this project."""
    return [sys.executable, "-m", f"benchmarks.peers.{module}", *place.arguments(), *more]


def foreign_peer(module: str, place: Place, *more: str) -> list[str]:
    """A peer with its own packages."""
    return [environment.python(), "-m", f"benchmarks.peers.{module}", *place.arguments(), *more]
