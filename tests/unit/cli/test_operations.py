"""What the runbook and the dashboard name is there: every metric, and every label that they ask for."""

import json
import re
from typing import Any

import pytest

from kapelle.cli.reference import documented
from tests.tidy.files import REPOSITORY

DASHBOARD = REPOSITORY / "deploy" / "grafana" / "kapelle.json"
RUNBOOK = REPOSITORY / "docs" / "operations.md"
METRIC = re.compile(r"kapelle_[a-z0-9_]+")
PARTS = ("_bucket", "_sum", "_count")


def named(text: str) -> set[str]:
    """The metrics that a text names; parts of histograms by the names of the histograms."""
    histograms = {metric.name for metric in documented() if metric.kind == "histogram"}
    found = set()
    for name in METRIC.findall(text):
        whole = next((name.removesuffix(part) for part in PARTS if name.endswith(part)), name)
        found.add(whole if whole in histograms else name)
    return found


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


@pytest.mark.parametrize("text", [DASHBOARD.read_text(), RUNBOOK.read_text()], ids=["dashboard", "runbook"])
def test_every_metric_that_is_named_exists(text: str) -> None:
    assert named(text) - {metric.name for metric in documented()} == set()


def test_every_panel_asks_something_and_says_what_it_is() -> None:
    assert len(panels()) > 15
    assert [panel["title"] for panel in panels() if not panel["title"] or not panel["targets"]] == []
    assert len({panel["id"] for panel in panels()}) == len(panels())
    assert [text for text in expressions() if not named(text) or text.count("(") != text.count(")")] == []


def test_panels_do_not_lie_on_each_other() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]

    assert len(set(places)) == len(places)


def test_counters_are_shown_as_rates_and_histograms_as_quantiles() -> None:
    kinds = {metric.name: metric.kind for metric in documented()}
    bare = [
        text
        for text in expressions()
        for name in named(text)
        if (kinds[name] == "counter" and "rate(" not in text)
        or (kinds[name] == "histogram" and "histogram_quantile(" not in text)
    ]

    assert bare == []


def test_no_metric_is_told_of_twice() -> None:
    names = [metric.name for metric in documented()]

    assert sorted(names) == sorted(set(names))
