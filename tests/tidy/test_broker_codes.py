"""One module reads the codes of librdkafka, so that a code means the same to all clients of a broker."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.files import REPOSITORY, UNITS, name_of, parsed, python_files

MAY_READ_CODES = {"topology/kapelle/broker/meanings.py"}


def codes_in(path: Path) -> Iterator[tuple[str, int]]:
    """Every code that a module names, as `KafkaError.X`, and every call of `retriable`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute):
            owner = getattr(node.value, "id", getattr(node.value, "attr", ""))
            if owner == "KafkaError" or node.attr == "retriable":
                yield f"{owner}.{node.attr}", node.lineno


def test_no_module_reads_codes_of_broker_errors_but_the_one_that_gives_them_their_meaning() -> None:
    found = [
        f"{name_of(path)}:{line} {code}"
        for path in python_files(*UNITS)
        if name_of(path) not in MAY_READ_CODES
        for code, line in codes_in(path)
    ]

    assert found == []


def test_the_module_that_may_read_codes_does_so() -> None:
    assert all(list(codes_in(REPOSITORY / name)) for name in MAY_READ_CODES)
