"""A process that folds a log into a view and says so after each batch: to be killed at any moment.

python -m tests.integration.api.folding_process LOG VIEWS BATCH BATCHES

LOG is a directory, or `SERVERS PREFIX` of topics on Kafka. After so many batches it waits for its end, so that a killer
who is slow still comes in time. On Kafka it goes on as long as something comes.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, Journal, KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.page import topology
from kapelle.views import Views

PARTITIONS = 3
WAIT_S = 0.25


@contextmanager
def journal_at(log: str) -> Iterator[Journal]:
    servers, _, prefix = log.partition(" ")
    if not prefix:
        with EmbeddedRuntime(topology(partitions=PARTITIONS), Path(log)) as runtime:
            yield EmbeddedJournal(runtime)
        return
    settings = KafkaSettings(bootstrap_servers=servers, call_timeout_s=60.0)
    journal = KafkaJournal(topology(prefix=prefix, partitions=PARTITIONS), settings)
    yield journal
    journal.close()


def main(log: str, views_directory: str, batch: str, batches: str) -> None:
    with journal_at(log) as journal:
        views = Views(journal, Path(views_directory), batch_records=int(batch))
        wait_s = WAIT_S if " " in log else 0.0
        for number in count(1):
            folded = views.folding.step(wait_s)
            while not folded and wait_s:
                folded = views.folding.step(wait_s)
            if not folded:
                break
            sys.stdout.write(f"{folded}\n")
            sys.stdout.flush()
            if number == int(batches):
                signal.pause()
        views.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
