"""Numbers and how they are shown: percentiles, medians of ratios, progress on stderr, one JSON line on stdout."""

import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

BEGAN = time.monotonic()


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("Expected values to take a percentile of, but there are none")
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(rank, 1) - 1]


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}_ms": round(percentile(milliseconds, percent), 2) for percent in (50, 95, 99)}


def median_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The median of the ratios of runs made side by side, by round: the machine's drift cancels out.

    None if no round has both.
    """
    ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys()]
    return round(statistics.median(ratios), 3) if ratios else None


def progress(text: str) -> None:
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a text table; the columns are those of the first row that has them, in order of appearance."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case float() if abs(value) < 1_000:
            return f"{value:.2f}"
        case int() | float():
            return f"{value:,.0f}"
        case _:
            return str(value)


def report(figures: Mapping[str, Any]) -> None:
    """The last line of every benchmark."""
    print(json.dumps(figures, sort_keys=False), flush=True)
