"""Definitions in the forms that tests may use."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kapelle.client import Workflow
from kapelle.processors.definitions import yaml_push

YAML: Final = (".yaml", ".yml")
Definition = Workflow | Mapping[str, object] | Path | str


def definition_text(definition: Definition) -> str:
    """A create request as JSON: from the builder, a dictionary, a file (JSON or YAML by its name), or JSON itself."""
    match definition:
        case Workflow():
            return definition.to_json()
        case Path():
            text = definition.read_text(encoding="utf-8")
            return yaml_push(text) if definition.suffix.lower() in YAML else text
        case str():
            return definition
    return json.dumps(definition)
