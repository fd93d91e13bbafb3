"""All help texts and all texts of the OpenAPI document: `python -m tests.support.texts` writes the golden file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from kapelle.api.app import create_app
from kapelle.cli import reference
from kapelle.topology.journal import Journal
from kapelle.views import Views

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "texts.txt"
REGENERATE: Final = "python -m tests.support.texts"
METHODS: Final = ("get", "post", "put", "patch", "delete")


def document() -> dict[str, Any]:
    """The OpenAPI document. It depends on the routes alone, so there is no log and no view."""
    app = create_app(cast(Journal, None), cast(Views, None))
    found: dict[str, Any] = app.openapi()
    return found


def texts() -> str:
    """First the command line, then the HTTP API."""
    return "\n".join([*command_line_lines(), "", "", *api_lines(document())]) + "\n"


def command_line_lines() -> Iterator[str]:
    """Each command with its help, then each different text of an argument or an option."""
    yield "THE COMMAND LINE"
    found = list(reference.commands(reference.root(), ("kapelle",)))
    for path, command in found:
        yield from ("", " ".join(path))
        yield from (f"  {line}".rstrip() for line in (command.help or "").replace("\b\n", "").strip().splitlines())
    yield from ("", "ARGUMENTS AND OPTIONS")
    yield from sorted(
        {f"  {name}: {text}" for path, command in found for name, text in reference.options(command, " ".join(path))}
    )


def api_lines(told: dict[str, Any]) -> Iterator[str]:
    """Each operation with its summary and description, then each different text of parameters, responses and bodies."""
    yield from ("THE HTTP API", "")
    yield f"{told['info']['title']}: {told['info']['description']}"
    found = [
        (f"{method.upper()} {path}", item[method])
        for path, item in told["paths"].items()
        for method in METHODS
        if method in item
    ]
    for name, operation in found:
        yield from ("", name, f"  {operation['summary']}")
        yield from _described(operation, "  ")
    yield from ("", "PARAMETERS")
    yield from sorted({line for _, operation in found for line in _parameters(operation)})
    yield from ("", "RESPONSES")
    yield from sorted({line for _, operation in found for line in _responses(operation)})
    for name, schema in told["components"]["schemas"].items():
        yield from ("", f"SCHEMA {name}")
        yield from _described(schema, "  ")
        for field, about in schema.get("properties", {}).items():
            yield from _described(about, f"  {field}: ")


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        yield from _described(parameter, f"  {parameter['in']} {parameter['name']}: ")


def _responses(operation: dict[str, Any]) -> Iterator[str]:
    for status, response in operation["responses"].items():
        yield from _described(response, f"  {status}: ")


def _described(about: dict[str, Any], prefix: str) -> Iterator[str]:
    lines = about.get("description", "").splitlines()
    yield from ((prefix + line).rstrip() for line in lines)


if __name__ == "__main__":
    GOLDEN.write_text(texts())
