"""The page of settings says what the code reads, and leaves nothing out."""

import re
from pathlib import Path

from kapelle.cli.configuration import configuration

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "configuration.md"


def test_the_page_is_what_the_code_says() -> None:
    told = "settings have changed: python -m kapelle.cli.configuration docs/configuration.md"

    assert PAGE.read_text() == configuration(), told


def test_every_variable_of_the_environment_is_on_the_page() -> None:
    units = ("schemas", "processors", "topology", "sdk", "reading", "relays", "gateway")
    sources = [path.read_text() for unit in units for path in (REPOSITORY / unit / "kapelle").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'"(KAPELLE_[A-Z_]+)"', text)}

    assert named - set(re.findall(r"`(KAPELLE_[A-Z_]+)`", PAGE.read_text())) == set()
