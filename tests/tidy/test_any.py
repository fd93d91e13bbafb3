"""`Any` stands only where types end: in codecs, and where people's JSON is read. The table may only shrink."""

import ast
from collections import Counter
from pathlib import Path
from typing import Final

from tests.tidy.files import UNITS, name_of, parsed, python_files

# Modules that mention `Any`, how often, and why. Handlers by type are a dictionary, whose type cannot say that each
# handler takes what its key tells.
ALLOWED: Final[dict[str, dict[str, int]]] = {
    "gateway": {
        "gateway/kapelle/api/document.py": 1,  # the OpenAPI document is JSON
        "gateway/kapelle/api/shared_queries.py": 1,  # one cache for the answers to all questions
        "gateway/kapelle/cli/reach.py": 1,  # the stubs of confluent_kafka know no callbacks
        "gateway/kapelle/cli/member_reports.py": 1,  # the statistics of librdkafka are JSON
        "gateway/kapelle/cli/commands/backfill.py": 2,  # Typer does not export the classes of its commands
        "gateway/kapelle/cli/root.py": 1,  # Typer does not export the class of its contexts
        "gateway/kapelle/cli/text/letters.py": 1,  # dead letters in the JSON of the API
    },
    "sdk": {
        "sdk/kapelle/client/gate_results.py": 1,  # the JSON of the API
        "sdk/kapelle/client/results.py": 1,  # the JSON of the API
        "sdk/kapelle/testing/engine.py": 4,  # parameters of tasks are JSON; each processor has its own tables
        "sdk/kapelle/worker/context.py": 1,  # parameters of a task are JSON
        "sdk/kapelle/worker/steps.py": 4,  # the annotations of a step's function, and its arguments
    },
    "processors": {
        # Readers and writers of people's definitions, which are YAML and JSON.
        "processors/kapelle/processors/definitions/fields.py": 1,
        "processors/kapelle/processors/definitions/forms.py": 5,
        "processors/kapelle/processors/definitions/json_text.py": 2,
        "processors/kapelle/processors/definitions/loop_checks.py": 2,
        "processors/kapelle/processors/definitions/models.py": 2,
        "processors/kapelle/processors/definitions/numbers.py": 2,
        "processors/kapelle/processors/definitions/properties.py": 6,
        "processors/kapelle/processors/definitions/writing.py": 1,
        "processors/kapelle/processors/definitions/yaml_params.py": 1,
        "processors/kapelle/processors/definitions/yaml_text.py": 2,
        # Values of parameters, which come from people's JSON and go back to it.
        "processors/kapelle/processors/params/coercion.py": 2,
        "processors/kapelle/processors/params/defaults.py": 3,
        "processors/kapelle/processors/params/definitions.py": 5,
        "processors/kapelle/processors/params/host.py": 3,
        "processors/kapelle/processors/params/interpolation.py": 1,
        "processors/kapelle/processors/params/outputs.py": 1,
        "processors/kapelle/processors/params/stored.py": 3,
        "processors/kapelle/processors/params/type_defaults.py": 2,
        "processors/kapelle/processors/params/types.py": 1,
        "processors/kapelle/processors/params/validators.py": 1,
        # All others.
        "processors/kapelle/processors/intake/forms.py": 1,  # JSON of other systems, read by msgspec
        "processors/kapelle/processors/processor.py": 4,  # handlers by type
        "processors/kapelle/processors/publisher/processor.py": 1,  # whatever the tables of a publisher are
        "processors/kapelle/processors/runs/params.py": 2,  # JSON of requests and reports
        "processors/kapelle/processors/runs/restarts.py": 4,  # JSON of requests, read by msgspec
        "processors/kapelle/processors/runs/announcements.py": 2,  # JSON of workers, read by msgspec
        "processors/kapelle/processors/runs/timeline.py": 1,  # handlers by type
        "processors/kapelle/processors/sel/builder.py": 1,  # what the parser has made of the parts of a rule
        "processors/kapelle/processors/sel/limits.py": 1,  # the language is dynamic: the one alias for its values
        "processors/kapelle/processors/signals/matching.py": 2,  # two scalars whose types are equal
        "processors/kapelle/processors/tables.py": 4,  # each table has keys and rows of its own
        "processors/kapelle/processors/workflows/processor.py": 1,  # one look at the type of an event
    },
    "topology": {
        "topology/kapelle/topology/build.py": 1,  # whatever the tables of a processor are
        "topology/kapelle/topology/exposition.py": 1,  # the statistics of librdkafka are JSON
        "topology/kapelle/topology/metrics.py": 1,  # measures by type
        "topology/kapelle/topology/kafka/reader.py": 1,  # the stubs of confluent_kafka miss facts
        "topology/kapelle/topology/replay/comparison.py": 1,  # whatever the tables of a shard are
        "topology/kapelle/topology/replay/exports.py": 2,  # a codec: records of Avro files
        "topology/kapelle/topology/replay/kafka.py": 1,  # the stubs of confluent_kafka miss facts
        "topology/kapelle/topology/replay/row_cache.py": 2,  # each table has keys and rows of its own
        "topology/kapelle/topology/tables/keys.py": 2,  # a codec, made of generated code
        "topology/kapelle/topology/tables/layout.py": 1,  # each table has rows of its own
        "topology/kapelle/topology/tables/shard.py": 3,  # each table has rows of its own
    },
    "reading": {
        "reading/kapelle/views/projection/backfills.py": 1,  # handlers by type
        "reading/kapelle/views/projection/breakpoints.py": 1,  # handlers by type
        "reading/kapelle/views/projection/children.py": 1,  # handlers by type
        "reading/kapelle/views/projection/permits.py": 1,  # handlers by type
        "reading/kapelle/views/projection/runs.py": 1,  # handlers by type
        "reading/kapelle/views/projection/schedules.py": 1,  # handlers by type
        "reading/kapelle/views/projection/signals.py": 1,  # handlers by type
        "reading/kapelle/views/projection/triggers.py": 1,  # handlers by type
        "reading/kapelle/views/projection/workflows.py": 1,  # handlers by type
        "reading/kapelle/views/queries/records.py": 1,  # the JSON of the API
    },
    "relays": {
        "relays/kapelle/lineage/events.py": 1,  # handlers by type
        "relays/kapelle/registry/client.py": 1,  # the JSON of the registry
        "relays/kapelle/sources/registry.py": 1,  # the JSON of the registry
        "relays/kapelle/sources/sns.py": 1,  # the JSON of Amazon
        "relays/kapelle/sources/field_errors.py": 2,  # errors of pydantic, as FastAPI hands them on
        "relays/kapelle/tracing/fold.py": 2,  # handlers by type
        "relays/kapelle/tracing/runs.py": 1,  # handlers by type
    },
    "schemas": {
        "schemas/kapelle/schemas/emit.py": 2,  # a codec: values of generated code
        "schemas/kapelle/schemas/reading.py": 1,  # a codec: values of any schema
    },
}


def mentions(path: Path) -> int:
    """How often a module names `Any`, imports excepted."""
    return sum(_is_any(node) for node in ast.walk(parsed(path)))


def _is_any(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in ("typing.Any", "t.Any")
    return isinstance(node, ast.Name) and node.id == "Any"


def test_no_module_mentions_any_more_often_than_the_table_allows() -> None:
    found = {unit: Counter({name_of(path): mentions(path) for path in python_files(unit)}) for unit in UNITS}

    too_many = {
        name: f"Expected at most {ALLOWED[unit].get(name, 0)}, but found {count}"
        for unit, counted in found.items()
        for name, count in counted.items()
        if count > ALLOWED[unit].get(name, 0)
    }

    assert too_many == {}, "use a type, object, a Protocol or a TypedDict"


def test_the_table_shrinks_with_the_code() -> None:
    listed = [(name, count) for modules in ALLOWED.values() for name, count in modules.items()]
    paths = {name_of(path): path for unit in UNITS for path in python_files(unit)}

    stale = {name: count for name, count in listed if name not in paths or mentions(paths[name]) < count}

    assert stale == {}, "lower these numbers"
