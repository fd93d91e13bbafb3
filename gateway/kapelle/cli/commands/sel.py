"""`kapelle sel`: evaluate and check SEL expressions."""

import json
import re
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from kapelle.cli.text import output
from kapelle.processors.sel import Host, InvalidResult, Sel, SelError, seeded
from kapelle.processors.sel.values import json_text

app = typer.Typer(help="Evaluate and check SEL expressions.", no_args_is_help=True, rich_markup_mode=None)
# Where a definition holds expressions: the keys whose text is SEL, wherever they stand.
EXPRESSION_KEYS = ("expression", "condition", "dedup_expr")

_LONELY = re.compile("[\ud800-\udfff]")


@app.command("eval")
def evaluate(
    expression: Annotated[str | None, typer.Argument(metavar="EXPR", help="Expression to evaluate.")] = None,
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="Set a parameter. A value that is not JSON is a string. Repeatable.",
        ),
    ] = None,
    jsonl: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help='Evaluate each line of a file: {"expr": …, "params": {…}}. Print one line for each.'
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the type, the value and the names as JSON.")] = False,
    now_ms: Annotated[
        int | None, typer.Option("--now-ms", help="Evaluate at this time, in milliseconds since 1970. Default: now.")
    ] = None,
    seed: Annotated[str | None, typer.Option(help="Use this seed for random numbers and ids.")] = None,
) -> None:
    """Evaluate one expression, or a file of expressions.

    \b
    Examples:
      kapelle sel eval '1 + 1'
      kapelle sel eval 'x > 3 && flag' --param x=5 --param flag=true
      kapelle sel eval --jsonl expressions.jsonl
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    root = seed if seed is not None else str(uuid.uuid4())
    if (expression is None) == (jsonl is None):
        raise typer.BadParameter("Expected either an expression or --jsonl, but found both or neither")
    if jsonl is not None:
        sel = Sel()
        for number, line in enumerate(_lines(jsonl), start=1):
            output.data(answer_line(sel, line, seeded(f"{root}/{number}", now)))
        return
    _evaluate_one(str(expression), _params(param or []), seeded(root, now), as_json=as_json)


def _evaluate_one(expression: str, params: dict[str, object], host: Host, *, as_json: bool) -> None:
    if as_json:
        answer = answer_of(Sel(), expression, params, host)
        output.data(_written(answer))
        raise typer.Exit(1 if "error" in answer else 0)
    try:
        result = Sel().evaluate(expression, params, host)
    except SelError as error:
        _show(error)
        raise typer.Exit(1) from error
    output.data(_LONELY.sub("?", result.value) if result.type == "STRING" else _written(result.value))
    output.say(result.type)


def answer_line(sel: Sel, line: bytes, host: Host) -> str:
    """The answer to one line of a collection. Whatever the line, there is exactly one."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _written({"error": "BadLine", "message": f"Expected a JSON object, but found {_reason(error)}"})
    if not isinstance(request, dict) or not isinstance(request.get("expr"), str):
        return _written({"error": "BadLine", "message": 'Expected {"expr": "…", "params": {…}}'})
    params = request.get("params") or {}
    if not isinstance(params, dict):
        return _written({"error": "BadLine", "message": "Expected an object as params"})
    return _written(answer_of(sel, request["expr"], params, host))


def _reason(error: Exception) -> str:
    return "too deep a nesting" if isinstance(error, RecursionError) else str(error)


def answer_of(sel: Sel, expression: str, params: dict[str, object], host: Host) -> dict[str, object]:
    """`{"type", "value", "names"}`, or `{"error", "message", …}`."""
    names: list[str] | None = None
    try:
        program = sel.program(expression)
        names = list(program.names)
        result = program.evaluate(params, host)
    except SelError as error:
        answer: dict[str, object] = {"error": error.kind, "message": error.message, "line": error.line}
        answer |= {"column": error.column, "text": error.fragment}
        answer |= {"hint": error.hint} if error.hint else {}
        answer |= {"type": error.type_name} if isinstance(error, InvalidResult) else {}
        return answer if names is None else {**answer, "names": names}
    return {"type": result.type, "value": result.value, "names": names}


@app.command("check")
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="File with one expression, a .json definition, or .jsonl.")
    ],
) -> None:
    """Check expressions without evaluating them, and list the names that they use.

    A .json file is a workflow definition: its expressions, conditions, validators and transitions are checked. A .jsonl
    file has one {"expr": …} per line. Any other file is one expression.

    \b
    Examples:
      kapelle sel check daily.sel
      kapelle sel check workflow.json
    """
    sel, failed = Sel(), 0
    for where, expression in _expressions(file):
        try:
            program = sel.program(expression)
            if program.problems:
                raise program.problems[0]
        except SelError as error:
            failed += 1
            output.say(f"{where}:", style="bold")
            _show(error)
        else:
            output.data(f"{where}: ok, uses {', '.join(program.names) or 'no names'}")
    if failed:
        raise typer.Exit(1)


def _expressions(file: str) -> Iterator[tuple[str, str]]:
    if not file.endswith((".json", ".jsonl")):
        yield file, b"".join(_lines(file)).decode("utf-8", "replace")
        return
    try:
        if file.endswith(".json"):
            yield from _in_definition(json.loads(b"".join(_lines(file))), "")
            return
        for number, line in enumerate(_lines(file), start=1):
            yield f"{file}:{number}", str(json.loads(line)["expr"])
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise typer.BadParameter(f"Expected {file} to hold JSON with expressions, but found: {error}") from error


def _in_definition(node: object, path: str) -> Iterator[tuple[str, str]]:
    """Every text of a definition that is SEL, with the way to it. A stack of our own: files may nest deeply."""
    stack = [(path, node)]
    while stack:
        where, member = stack.pop()
        if isinstance(member, list):
            stack.extend((f"{where}[{n}]", item) for n, item in reversed(list(enumerate(member))))
        elif isinstance(member, dict):
            inner = list(member.items())
            for key, value in inner:
                if isinstance(value, str) and _is_expression(key, value):
                    yield f"{where}.{key}".lstrip("."), value
                elif key == "successors" and isinstance(value, dict):
                    yield from ((f"{where}.{key}.{k}".lstrip("."), v) for k, v in value.items() if isinstance(v, str))
            stack.extend((f"{where}.{key}".lstrip("."), value) for key, value in reversed(inner) if key != "successors")


def _is_expression(key: str, value: str) -> bool:
    return key in EXPRESSION_KEYS or (key == "validator" and not value.startswith("@"))


def _params(given: Iterable[str]) -> dict[str, object]:
    params: dict[str, object] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"Expected --param NAME=VALUE, but found {pair!r}")
        try:
            params[name] = json.loads(text)
        except (ValueError, RecursionError):
            params[name] = text
    return params


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
    else:
        with Path(file).open("rb") as opened:
            yield from opened


def _written(answer: object) -> str:
    """The answer as one line of JSON. Half a surrogate pair has no UTF-8, but JSON can escape it."""
    return _LONELY.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text(answer))


def _show(error: SelError) -> None:
    # The caret must stand under its place: no wrapping, no colours inside the line.
    sys.stderr.write(_LONELY.sub("?", error.rendered()) + "\n")
    sys.stderr.flush()
