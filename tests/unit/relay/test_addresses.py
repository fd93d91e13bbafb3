"""Messages show the origin of an address, and nothing that may be a secret."""

import pytest

from kapelle.relay.addresses import origin_of


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://host/path", "ftp://host"),
        ("host", "host"),
        ("http://", "http://"),
        ("http://user:secret@host:80/", "http://***@host:80"),
        ("user:secret@host", "***@host"),
        ("http://user:sec/r@et@host", "http://***@host"),
        ("http://host?token=secret", "http://host"),
        ("http://host:99999/hooks/secret", "http://host:99999"),
        ("http://host\\secret", "http://host"),
        ("user:secret@host://x", "***@host:"),
    ],
)
def test_a_message_shows_only_the_scheme_and_the_host_of_an_address(url: str, shown: str) -> None:
    assert origin_of(url) == shown
