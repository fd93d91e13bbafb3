"""What the page on sinks shows can be used."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.sinks.models import SECRETS_VARIABLE, Retry, Sink, SnsRule, WebhookRule

PAGE = (Path(__file__).parents[3] / "docs" / "sinks.md").read_text()


def test_the_file_of_the_page_is_a_file_of_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRETS_VARIABLE, "ops:sixteen-or-more-1,shop:sixteen-or-more-2")
    file = tmp_path / "sinks.yaml"
    file.write_text(re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0])

    done = CliRunner().invoke(cli, ["sinks", "check", str(file)])

    assert done.exit_code == 0, done.output
    assert "3 sinks in" in done.stderr


def test_the_page_names_every_key() -> None:
    keys = [*Sink.model_fields, *WebhookRule.model_fields, *SnsRule.model_fields, *Retry.model_fields]

    assert [key for key in keys if not re.search(rf"`(?:\w+\.)?{key}[`:]|\b{key}:", PAGE)] == []
