"""A new user's path: the wheel in a fresh environment, then every block of the quickstart, with the output it shows."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.tidy.files import REPOSITORY

PAGE = REPOSITORY / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(sh|text|yaml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"this as `([\w.]+)`:\s*$")
INSTALL = "pip install kapelle"
LEFT_RUNNING = ("kapelle dev", "kapelle worker")
DEFAULT_URL = "http://127.0.0.1:8080"
FIRST_WORKFLOW_S_MAX = 60.0
COMMAND_S_MAX = 120


class Terminal:
    """Where a new user types: a folder with an environment in which nothing but the wheel is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = DEFAULT_URL
        self.left: list[subprocess.Popen[bytes]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KAPELLE_", "PYTHON"))}
        path = f"{folder / 'kapelle-env' / 'bin'}{os.pathsep}{kept['PATH']}"
        self.environment = {**kept, "PATH": path, "NO_COLOR": "1"}

    def run(self, command: str) -> str:
        """What a command says, data and remarks, as a terminal shows them."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
        )
        return done.stdout

    def leave_running(self, command: str) -> None:
        """Start a server or a worker in a terminal of its own. The server takes any port that is free."""
        words = command.split() + (["--port", "0"] if command.startswith("kapelle dev") else [])
        words[0] = str(self.folder / "kapelle-env" / "bin" / words[0])
        said = self.folder / f"{len(self.left)}.log"
        with said.open("wb") as log:
            self.left.append(subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=log, stderr=log))
        if "dev" in words:
            self.url = self.environment["KAPELLE_URL"] = self._told_url(said)

    def _told_url(self, said: Path) -> str:
        """Where the server is: it says so when it is ready."""
        deadline = time.monotonic() + COMMAND_S_MAX
        while not (found := re.search(r"^(http://\S+)\n", said.read_text(), re.MULTILINE)):
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.05)
        return found.group(1)

    def ctrl_c(self) -> list[int]:
        """End what was left running, the last first, and tell how each ended."""
        codes = []
        for process in reversed(self.left):
            process.send_signal(signal.SIGINT)
            codes.append(process.wait(30))
        self.left.clear()
        return codes


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    try:
        yield found
    finally:
        for process in found.left:
            process.kill()
            process.wait()


def blocks() -> Iterator[tuple[str, str, str]]:
    """The blocks of the page: their kind, the line before them, and their text."""
    text = PAGE.read_text()
    for found in BLOCK.finditer(text):
        before = text[: found.start()].rstrip().splitlines()[-1]
        yield found.group(1), before, found.group(2)


def install(folder: Path) -> None:
    """The wheel, with the versions that are locked."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "kapelle-env" / "bin" / "python"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    call(build, REPOSITORY)
    call([sys.executable, "-m", "venv", "--without-pip", str(folder / "kapelle-env")], folder)
    wheel = str(next(folder.glob("*.whl")))
    locked = ["--constraints", str(REPOSITORY / "requirements.lock")]
    call([str(uv), "pip", "install", "--quiet", "--python", str(python), *locked, wheel], folder)


def call(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def is_as_shown(said: str, shown: str) -> bool:
    """Whether an output is the one of the page, where `…` stands for anything and each time for any time."""
    pattern = re.escape(shown.strip()).replace("…", "(?s:.*?)")
    pattern = re.sub(r"12:00:00\\\.000", r"\\d\\d:\\d\\d:\\d\\d\\.\\d{3}", pattern)
    lines = "\n".join(line.rstrip() for line in said.strip().splitlines())
    return re.fullmatch(pattern, lines) is not None


def test_every_command_of_the_quickstart_answers_what_the_page_says(terminal: Terminal) -> None:
    install(terminal.folder)
    installed_s = time.monotonic()
    finished_s = None
    said = ""
    for kind, before, text in blocks():
        named = FILE.search(before)
        if kind == "text":
            assert is_as_shown(said, text), f"Expected\n{text}\nbut found\n{said}"
            if "orders/1 SUCCEEDED" in said and finished_s is None:
                finished_s = time.monotonic() - installed_s
        elif named is not None:
            (terminal.folder / named.group(1)).write_text(text.replace(DEFAULT_URL, terminal.url))
        elif kind == "sh" and INSTALL not in text:
            for command in text.strip().splitlines():
                if command.startswith(LEFT_RUNNING):
                    terminal.leave_running(command)
                else:
                    said = terminal.run(command)

    assert finished_s is not None
    assert finished_s < FIRST_WORKFLOW_S_MAX
    assert terminal.ctrl_c() == [0, 0]


def test_every_block_of_the_quickstart_is_a_file_a_command_or_an_output() -> None:
    lost = [text for kind, before, text in blocks() if kind in ("yaml", "python") and not FILE.search(before)]

    assert lost == []
    assert sum(INSTALL in text for _, _, text in blocks()) == 1
