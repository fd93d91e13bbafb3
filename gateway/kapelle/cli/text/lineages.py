"""Lineages for people and for tools that draw: a table of edges, DOT, Mermaid."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import output, tables

if TYPE_CHECKING:
    from kapelle.client import Lineage, LineageEdge, LineageNode

# Mermaid reads these as its own, even within quotes.
MERMAID_CODES: Final = {ord(char): f"#{ord(char)};" for char in '#"&;<>`\\[]{}()|\n\r'}
MORE: Final = "…"


def label(node: "LineageNode") -> str:
    """What a node is called."""
    if node.type == "SIGNAL":
        return f"{node.name} {node.sequence}"
    return f"{node.workflow_id}/{node.workflow_instance_id}"


def edge_label(edge: "LineageEdge") -> str:
    """What an edge says: its kind, and whose step it was."""
    by = f" {edge.step_id}" if edge.step_id else ""
    return f"{edge.type.lower()}{by}{' again' if edge.is_repetition else ''}"


def show(lineage: "Lineage") -> None:
    """The edges as a table."""
    names = {node.id: label(node) for node in lineage.nodes}
    states = {node.id: node.status or "" for node in lineage.nodes}
    rows = [
        (
            names.get(edge.source, edge.source),
            edge_label(edge),
            names.get(edge.target, edge.target),
            states[edge.target],
        )
        for edge in lineage.edges
    ]
    tables.show(("from", "what", "to", "status"), rows)
    if not rows:
        output.say("no lineage is known for this signal")
    if lineage.is_cut:
        cut = ", ".join(label(node) for node in lineage.nodes if node.is_cut)
        output.say(f"more exists beyond {cut}: use a greater --depth, or start there")


def as_dot(lineage: "Lineage") -> str:
    """The graph for Graphviz."""
    return "\n".join(["digraph lineage {", "  rankdir=LR", *_dot_lines(lineage), "}"])


def _dot_lines(lineage: "Lineage") -> Iterator[str]:
    for node in lineage.nodes:
        shape = "ellipse" if node.type == "SIGNAL" else "box"
        style = ", style=bold" if node.id == lineage.root else ""
        yield f"  {_quoted(node.id)} [label={_quoted(_shown(node))}, shape={shape}{style}]"
    for edge in lineage.edges:
        style = ", style=dashed" if edge.is_repetition else ""
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(edge_label(edge))}{style}]"


def _shown(node: "LineageNode") -> str:
    more = f" {MORE}" if node.is_cut else ""
    return f"{label(node)}{f' {node.status}' if node.status else ''}{more}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
    return f'"{escaped}"'


def as_mermaid(lineage: "Lineage") -> str:
    """The graph for Mermaid."""
    return "\n".join(["flowchart LR", *_mermaid_lines(lineage)])


def _mermaid_lines(lineage: "Lineage") -> Iterator[str]:
    numbers = {node.id: f"n{number}" for number, node in enumerate(lineage.nodes)}
    for node in lineage.nodes:
        before, after = ('(["', '"])') if node.type == "SIGNAL" else ('["', '"]')
        yield f"  {numbers[node.id]}{before}{_coded(_shown(node))}{after}"
    for edge in lineage.edges:
        arrow = "-.->" if edge.is_repetition else "-->"
        yield f'  {numbers[edge.source]} {arrow}|"{_coded(edge_label(edge))}"| {numbers[edge.target]}'


def _coded(text: str) -> str:
    return text.translate(MERMAID_CODES)
