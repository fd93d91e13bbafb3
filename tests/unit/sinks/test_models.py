"""A file of sinks says what is wrong with it, all at once, and never shows a secret."""

import pytest

from kapelle.sinks import BadSinks, read_sinks
from kapelle.sinks.models import SECRETS_VARIABLE

GOOD = """
sinks:
  ops:
    topics: [public.instances.changes]
    webhook: {url: "https://ops.example.com/kapelle"}
"""
SECRET = "sixteen-or-more-of-them"  # noqa: S105 - of a test


def problems(text: str, **environment: str) -> str:
    with pytest.raises(BadSinks) as refused:
        read_sinks(text, environment)
    return str(refused.value)


def test_a_secret_comes_from_the_environment() -> None:
    found = read_sinks(GOOD, {SECRETS_VARIABLE: f"ops:{SECRET},other:{SECRET}"})["ops"]

    assert found.webhook is not None
    assert found.webhook.secrets == [SECRET]
    assert SECRET not in repr(found)


def test_a_webhook_without_a_secret_is_refused() -> None:
    assert "sinks.ops.webhook: Expected a secret here or in KAPELLE_SINK_SECRETS, but found none" in problems(GOOD)


def test_all_problems_are_told_at_once() -> None:
    told = problems(
        """
        sinks:
          a b: {topics: [public.steps.changes], sns: {topic: "arn:aws:sns:eu-central-1:1:x"}}
          two: {topics: [], sns: {topic: nowhere}, typo: 1}
          both: {topics: [public.steps.changes], sns: {topic: "arn:aws:sns:eu-central-1:1:x"}, webhook: {url: "http://h"}}
          retry: {topics: [tasks], sns: {topic: "arn:aws:sns:eu-central-1:1:x"}, retry: {attempts: 0}}
        """
    )

    for part in ("a b", "two.topics", "two.sns.topic", "two.typo", "both: ", "retry.topics.0", "retry.retry.attempts"):
        assert part in told


@pytest.mark.parametrize(
    "url",
    ["ftp://h/", "h", "http://", "http://user:password-of-ours@h/", "http://h:99999/", "http://[/", "http://h/\n"],
)
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    text = f"sinks: {{ops: {{topics: [public.steps.changes], webhook: {{url: {url!r}}}}}}}".replace("\\n", "\n")

    told = problems(text)

    assert "sinks.ops.webhook.url" in told or "Expected" in told
    assert "password-of-ours" not in told


@pytest.mark.parametrize("text", ["", "[]", "sinks: {}", "sinks: [1]", "{", "sinks: {x: 1}"])
def test_what_is_no_file_of_sinks_is_refused(text: str) -> None:
    assert "Expected a file of sinks" in problems(text)
