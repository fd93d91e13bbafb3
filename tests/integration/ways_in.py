"""Kapelle as people run it, in processes of its own: `kapelle dev`, or processors, API and worker on a real broker."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.topology.page import PROCESSORS
from tests.support.broker import Broker

KAPELLE = (sys.executable, "-m", "kapelle.cli.main")
START_S = 60.0  # on a machine that has much else to do
PARTITIONS = 2


class Running:
    """A command that runs until it is told to stop."""

    def __init__(self, words: Sequence[str], folder: Path, variables: Mapping[str, str] = {}) -> None:
        self._log = folder / f"{words[0]}-{uuid.uuid4().hex[:6]}.log"
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [*KAPELLE, *words],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**environment(), **variables},
                text=True,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def url(self) -> str:
        """The first line on stdout: where the server is. Comes when it is ready."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("http://"), f"Expected a URL, but found {line!r}\n{self.said}"
        return line

    def until(self, text: str) -> None:
        """Wait until something was said."""
        deadline = time.monotonic() + START_S
        while text not in self.said:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, f"Expected {text!r} within {START_S} s\n{self.said}"
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """How it ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(30)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()


def environment() -> dict[str, str]:
    """Ours, without settings of Kapelle's and without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAPELLE_")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "200"}


@contextmanager
def running(words: Sequence[str], folder: Path) -> Iterator[Running]:
    """A command for as long as the block."""
    found = Running(words, folder)
    try:
        yield found
    finally:
        found.stop()


class Shell:
    """A user's terminal in a folder, with a server to talk to. Its commands run in this process: they are many."""

    def __init__(self, folder: Path, url: str, token: str | None = None) -> None:
        self.folder = folder
        self.url = url
        self._token = token

    def kapelle(self, *words: str, code: int = 0) -> str:
        """What a command answers. It must end with this code."""
        done = self.answer(*words)
        assert done.exit_code == code, f"kapelle {' '.join(words)}: {done.exit_code}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stdout + re.sub(r"\s+", " ", done.stderr)

    def answer(self, *words: str) -> Result:
        """All that a command answers, whatever code it ends with."""
        outside = {name: None for name in os.environ if name.startswith("KAPELLE_")}
        ours = {"KAPELLE_URL": self.url, "KAPELLE_TOKEN": self._token, "KAPELLE_USER": "ann", "NO_COLOR": "1"}
        with chdir(self.folder):
            return CliRunner().invoke(cli, words, prog_name="kapelle", env={**outside, **ours})


@contextmanager
def on_the_embedded_log(folder: Path, module: str) -> Iterator[Shell]:
    """One process."""
    with running(["dev", "--port", "0", "--data", "data", "--worker", module], folder) as dev:
        yield Shell(folder, dev.url())
        assert dev.process.poll() is None, dev.said


@contextmanager
def on_a_broker(folder: Path, module: str, broker: Broker, *, prefix: str = "", dispatch: str = "") -> Iterator[Shell]:
    """Three processes and a broker; the worker takes its tasks from Kafka."""
    servers = ["--bootstrap-servers", broker.bootstrap_servers]
    where = [*servers, "--prefix", prefix or f"ways-{uuid.uuid4().hex[:8]}"]
    shape = [*where, "--partitions", str(PARTITIONS)]
    Shell(folder, "http://unused").kapelle("topics", "apply", *shape, "--replication", "1")
    with ExitStack() as opened:
        names = [one.name for one in PROCESSORS]
        processors = opened.enter_context(
            running(["processors", "run", *names, *shape, "--state-dir", "state"], folder)
        )
        api = opened.enter_context(running(["api", "run", *shape, "--port", "0"], folder))
        taking = ["--dispatch", dispatch] if dispatch else []
        worker = opened.enter_context(running(["worker", "run", module, *where, *taking], folder))
        for name in names:  # a command is answered when they fold, and waits no longer for that than for its answer
            for partition in range(PARTITIONS):
                processors.until(f"{name}-{partition} is folding")
        yield Shell(folder, api.url())
        for one in (processors, api, worker):
            assert one.process.poll() is None, one.said
