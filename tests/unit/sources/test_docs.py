"""What the page on sources shows is what happens."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from kapelle.cli.all_commands import cli

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"


def block(form: str, number: int = 0) -> str:
    """A block of the page."""
    return str(re.findall(rf"^```{form}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[number])


def test_the_sample_of_the_page_becomes_a_signal(tmp_path: Path) -> None:
    file, sample = tmp_path / "sources.yaml", tmp_path / "order.json"
    file.write_text(block("yaml"))
    sample.write_text(block("json"))

    done = CliRunner().invoke(cli, ["sources", "check", str(file), "--topic", "shop.orders", "--sample", str(sample)])

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == [
        {
            "topic": "shop.orders",
            "signal": {
                "name": "order-placed",
                "id": "shop.orders-0-0",
                "params": {"order": 4711, "day": "2026-11-16", "region": "eu", "tier": 1},
                "payload": {},
                "happened_at_ms": None,
            },
        }
    ]


def test_a_sample_that_makes_no_signal_is_told_why(tmp_path: Path) -> None:
    file, sample = tmp_path / "sources.yaml", tmp_path / "order.json"
    file.write_text(block("yaml"))
    sample.write_text('{"type": "placed"}')

    done = CliRunner().invoke(cli, ["sources", "check", str(file), "--sample", str(sample)])

    assert done.exit_code == 1
    assert json.loads(done.stdout) == [
        {"topic": "shop.orders", "refused": "Expected parameter 'order' at /id, but found nothing there"},
        {"topic": "shop.payments", "filtered": True},
    ]


def test_a_bad_file_or_sample_is_wrong_usage(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_text("sources: 7")
    good.write_text(block("yaml"))

    of_file = CliRunner().invoke(cli, ["sources", "check", str(bad)])
    of_sample = CliRunner().invoke(cli, ["sources", "check", str(good), "--sample", str(bad)])

    assert (of_file.exit_code, of_sample.exit_code) == (2, 2)
    assert "Expected a file of sources" in of_file.stderr
    assert "Expected JSON" in of_sample.stderr


def test_the_row_of_the_page_fits_the_table() -> None:
    table = CliRunner().invoke(cli, ["outbox", "sql"]).stdout
    columns = re.search(r"INSERT INTO (\w+) \(([^)]*)\)", block("sql"))

    assert columns is not None
    assert f"CREATE TABLE IF NOT EXISTS {columns[1]} (" in table
    assert all(re.search(rf"^    {name} ", table, re.MULTILINE) for name in columns[2].split(", "))
