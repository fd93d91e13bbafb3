"""Histories recorded by earlier versions: today's code decides and folds them as they were."""

from pathlib import Path

import pytest

from kapelle.testing.replay import assert_replays
from kapelle.topology.replay.exports import read_about
from tests.replay.record import RECORDED

FILES = sorted(RECORDED.glob("*.avro"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recorded_history_is_decided_and_folded_as_it_was(path: Path) -> None:
    assert_replays(path)


def test_the_recorded_histories_are_of_every_processor_that_remembers_anything() -> None:
    told = [shard for path in FILES for shard in read_about(path).shards]

    silent = {shard.processor for shard in told} - {shard.processor for shard in told if shard.events}
    assert silent == {"intake"}
    assert all(read_about(path).inputs for path in FILES)
