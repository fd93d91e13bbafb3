"""The reference says what the commands say."""

from pathlib import Path

from kapelle.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_reference_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), "the commands have changed: python -m kapelle.cli.reference docs/cli.md"
