"""The cost of one evaluation of a typical expression, cached, compared with simpleeval and cel-python.

    python -m benchmarks.sel [--quick]

All run in this process and in turns, so that other load of the machine affects all of them. The figure of each is that
of its best round. All preparation is done beforehand: SEL has its program compiled, simpleeval its expression parsed,
cel-python its program compiled and its values converted. A second figure is the cost with the text as input: SEL looks
its program up by the text, simpleeval parses it. The last line is one JSON object.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.sel_peers import prepare
from kapelle.processors.sel import Host, Sel, seeded

NOW_MS = 1_700_000_000_000
INPUTS = {"x": 5, "flag": True, "param1": "bar", "RUN_TS": NOW_MS, "name": "kapelle"}
SMALL = 'if (x > 1) return "big"; return "small";'
DATE = 'DateTime d = new DateTime(RUN_TS).withZone(DateTimeZone.forID("UTC")).minusDays(1); d.toString("yyyyMMdd");'
# The expression in SEL, in simpleeval, in CEL; None where the peer cannot say it. And what it gives.
EXPRESSIONS: dict[str, tuple[str, str | None, str | None, Any]] = {
    "condition": ("x > 3 && flag", "x > 3 and flag", "x > 3 && flag", True),
    "sum": ("1 + 1", "1 + 1", "1 + 1", 2),
    "text": ('"foo" + param1', '"foo" + param1', '"foo" + param1', "foobar"),
    "choice": (SMALL, '"big" if x > 1 else "small"', 'x > 1 ? "big" : "small"', "big"),
    "date": (DATE, None, None, "20231113"),
}
Contender = Callable[[], Any]


def contenders() -> dict[tuple[str, str], Contender]:
    """What is measured, by expression and by engine."""
    sel, host, peers = Sel(), seeded("benchmark", NOW_MS), prepare(INPUTS)
    found: dict[tuple[str, str], Contender] = {}
    for name, (ours, simple, cel, expected) in EXPRESSIONS.items():
        found[name, "ours"] = _prepared(sel, ours, host)
        found[name, "ours by text"] = _by_text(sel, ours, host)
        if simple is not None:
            found[name, "simpleeval"] = peers.simpleeval(simple)
            found[name, "simpleeval by text"] = peers.simpleeval_unprepared(simple)
        if cel is not None:
            found[name, "cel-python"] = peers.cel(cel)
        for (expression, engine), run in found.items():
            assert expression != name or run() == expected, (expression, engine, run())
    return found


def _prepared(sel: Sel, text: str, host: Host) -> Contender:
    program = sel.program(text)
    return lambda: program.value(INPUTS, host)


def _by_text(sel: Sel, text: str, host: Host) -> Contender:
    return lambda: sel.evaluate(text, INPUTS, host).value


def best_us(runs: dict[tuple[str, str], Contender], *, rounds: int, round_s: float) -> dict[tuple[str, str], float]:
    """The best round of each, in microseconds a call. Every round visits every contender."""
    calls = {key: max(1, int(round_s / max(_once(run), 1e-7))) for key, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for key, run in runs.items():
            best[key] = min(best[key], _timed(run, calls[key]))
    return {key: seconds * 1e6 for key, seconds in best.items()}


def _once(run: Contender) -> float:
    return statistics.median(_timed(run, 20) for _ in range(5))


def _timed(run: Contender, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - began) / calls


def compile_us(rounds: int) -> float:
    """The additional cost of the first evaluation of a text: parsing and compiling the condition."""
    text = EXPRESSIONS["condition"][0]
    return min(_timed(lambda: Sel().program(text), 20) for _ in range(rounds)) * 1e6


def report(us: dict[tuple[str, str], float], first_us: float) -> dict[str, Any]:
    """The figures, and the ratios of the goals."""
    figures: dict[str, Any] = {f"{name}_us": round(us[name, "ours"], 3) for name in EXPRESSIONS}
    for engine, key in (("simpleeval", "vs_simpleeval"), ("cel-python", "vs_cel_python")):
        ratios = {name: us[name, engine] / us[name, "ours"] for name in EXPRESSIONS if (name, engine) in us}
        figures |= {f"{name}_{key}": round(ratio, 1) for name, ratio in ratios.items()}
        figures[key] = round(min(ratios.values()), 1)
    by_text = {n: us[n, "simpleeval by text"] / us[n, "ours by text"] for n in EXPRESSIONS if (n, "simpleeval") in us}
    figures["by_text_us"] = round(us["condition", "ours by text"], 3)
    figures["by_text_vs_simpleeval"] = round(min(by_text.values()), 1)
    figures["compile_us"] = round(first_us, 1)
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Measure fewer rounds, in under a minute")
    quick = parser.parse_args(arguments).quick
    runs = contenders()
    us = best_us(runs, rounds=200 if quick else 1000, round_s=0.002)
    width = max(len(engine) for _, engine in us)
    for (name, engine), value in us.items():
        print(f"{name:10} {engine:{width}} {value:10.2f} µs")
    print(json.dumps(report(us, compile_us(20))))


if __name__ == "__main__":
    main()
