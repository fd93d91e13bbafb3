"""A process that serves the API over an embedded log until a signal comes, and then says that it ended well.

python -m tests.integration.api.server_process DIRECTORY
"""

import sys
from pathlib import Path

from kapelle.api import create_app, serve
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.page import topology
from kapelle.views import Views


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(directory: str) -> None:
    with EmbeddedRuntime(topology(partitions=1), Path(directory) / "log") as runtime:
        runtime.start()
        journal = EmbeddedJournal(runtime)
        with Views(journal, Path(directory) / "views") as views:
            serve(create_app(journal, views), "127.0.0.1", 0, ready=say)
    say("ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
