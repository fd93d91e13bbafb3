"""A coverage-guided fuzzer over bytes: whatever comes in, a value or a typed error comes out.

    python -m venv .cache/venv-fuzz && .cache/venv-fuzz/bin/pip install atheris lark google-re2 msgspec
    .cache/venv-fuzz/bin/python tests/property/sel/fuzz_parser.py -max_total_time=60

Anything that is neither ends the run with the input that caused it. The corpus begins with the rows of the conformance
tables; the options are libFuzzer's. Half of the inputs are evaluated, the others go through parameters, where the
bytes are patterns, texts and formats.
"""

import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # only in the environment of its own

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(REPOSITORY / unit) for unit in ("processors", "schemas")]

with atheris.instrument_imports(include=["kapelle.processors.sel", "lark"]):
    from kapelle.processors.sel import Limits, Sel, SelError, seeded

SEL = Sel(Limits(expression_chars=2_000, visits=20_000, memory_bytes=2_000_000, loop_iterations=500, array_length=500))
THROUGH_PARAMETERS = (
    "p.split(q)",
    "p.replaceAll(q, p)",
    "String.format(p, q, 1, 2.5, true)",
    "DateTimeFormat.forPattern(p).parseDateTime(q).toString(p)",
    "new DateTime(p).toString(q)",
    "DateTimeZone.forID(p).getOffset(0)",
    "Util.timeoutForDateTimeDeadline(new DateTime(), p) + Long.parseLong(q) + Double.parseDouble(q)",
)


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    text = data[1:].decode("utf-8", "surrogateescape")
    choice = data[0] if data else 0
    try:
        if choice % 2:
            half = len(text) // 2
            inputs = {"p": text[:half], "q": text[half:]}
            SEL.evaluate(THROUGH_PARAMETERS[choice // 2 % len(THROUGH_PARAMETERS)], inputs, seeded("f", 0))
        else:
            SEL.evaluate(text, {"x": 5, "s": "abc", "flag": True, "longs": [1, 2]}, seeded("f", 0))
    except SelError as error:
        error.rendered()


def seed_corpus(folder: Path) -> None:
    """One file for each row of the conformance tables."""
    for table in (REPOSITORY / "tests/unit/sel/conformance").glob("*.txt"):
        for number, line in enumerate(table.read_text(encoding="utf-8").splitlines()):
            if " => " in line:
                (folder / f"{table.stem}-{number}").write_bytes(b"\0" + line.rpartition(" => ")[0].encode())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as corpus:
        seed_corpus(Path(corpus))
        atheris.Setup([*sys.argv, corpus], one_input)
        atheris.Fuzz()
