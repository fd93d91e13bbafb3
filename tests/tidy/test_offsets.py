"""librdkafka puts error values where offsets are expected, so one module asks it, and tells answers from errors."""

import ast

from tests.tidy.files import name_of, parsed, python_files

ASKING = {"list_offsets", "get_watermark_offsets", "offsets_for_times", "list_consumer_group_offsets", "position"}
MAY_ASK = {
    "topology/kapelle/topology/kafka/answers.py": ASKING | {"committed"},
    "sdk/kapelle/worker/kafka_readers.py": {"get_watermark_offsets"},  # below the topology: it has a check of its own
}


def test_nothing_asks_librdkafka_for_offsets_but_the_module_that_tells_answers_from_errors() -> None:
    found = set()
    for path in python_files("topology", "reading", "relays", "gateway", "sdk"):
        name = name_of(path)
        for node in ast.walk(parsed(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called, asked = node.func.attr, ast.unparse(node.func.value)
            raw = (called in ASKING and asked != "self") or (called == "committed" and asked.endswith("consumer"))
            if raw and called not in MAY_ASK.get(name, ()):
                found.add(f"{name}:{node.lineno} {asked}.{called}")

    assert sorted(found) == []
