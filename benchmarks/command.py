"""The command line of a benchmark: it measures parts one after the other, and prints the figures as the last line."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from benchmarks.figures import progress, report
from benchmarks.harness import Refused
from benchmarks.programs import ProgramDied

Figures = Mapping[str, Any]


class Part(Protocol):
    """Figures that are measured together."""

    def __call__(self, *, quick: bool) -> Figures: ...


def among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """An option that takes some of these, with commas between."""

    def names(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found {','.join(unknown)}")
        return found

    return names


def measured(parts: Mapping[str, Part], wanted: Sequence[str], *, quick: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The figures, and the parts without a figure, with the reason."""
    figures: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name in wanted:
        progress(f"measuring {name}")
        try:
            figures |= parts[name](quick=quick)
        except (Refused, ProgramDied) as failure:
            refused[name] = str(failure)
            progress(f"{name} gives no figure: {failure}")
    return figures, refused


def run(
    name: str,
    description: str | None,
    parts: Mapping[str, Part],
    *,
    in_the_end: Callable[[Figures], Figures] = lambda _: {},
) -> int:
    """Measure the parts that the command line names, and report them. `in_the_end`: figures derived from others."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="Measure less, in under a minute")
    parser.add_argument("--only", type=among(tuple(parts)), default=tuple(parts), help="Measure only these parts: a,b")
    options = parser.parse_args(sys.argv[1:])
    figures, refused = measured(parts, options.only, quick=options.quick)
    end({"benchmark": name, "quick": options.quick, **figures, **in_the_end(figures)}, refused)
    return 1 if refused else 0


def end(figures: dict[str, Any], refused: Mapping[str, str]) -> None:
    """The last line, with the load of the machine and the parts without a figure."""
    figures["load_average"] = round(os.getloadavg()[0], 1)  # far above the number of cores: do not trust the figures
    if refused:
        figures["refused"] = refused
    report(figures)
