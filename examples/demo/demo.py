"""The demo: a server, a worker, and a workflow with a branch, a retry, a failure and a restart.

python -m examples.demo.demo
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KAPELLE = [sys.executable, "-m", "kapelle.cli.main"]
FOLDER = Path(__file__).parent
COMMANDS = (
    (("workflow", "push", "workflow.yaml"), 0),
    (("run", "start", "demo", "--watch", "--timeout", "45"), 1),
    (("run", "restart", "demo", "1", "--param", "approved=true", "--watch", "--timeout", "45"), 0),
    (("run", "timeline", "demo", "1"), 0),
    (("run", "describe", "demo", "1"), 0),
)


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def main() -> int:
    """Run the demo. 0 if every command ended as it should."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kapelle-demo-") as data:
        words = ("dev", "--port", "0", "--data", data, "--worker", "steps.py")
        say("$ kapelle dev --data DIR --worker steps.py &")
        server = subprocess.Popen([*KAPELLE, *words], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
        try:
            surprises = _run(server)
        finally:
            server.terminate()
            ended = server.wait(20)
    say(f"The demo took {time.monotonic() - began_s:.0f} s")
    for surprise in surprises:
        print(surprise, file=sys.stderr)
    return 1 if surprises or ended else 0


def _run(server: subprocess.Popen[str]) -> list[str]:
    """The commands that ended otherwise than they should."""
    assert server.stdout is not None, "it was asked for as a pipe"
    with server.stdout as said:
        url = said.readline().strip()
    if not url:
        return ["kapelle dev did not start"]
    surprises = []
    for words, expected in COMMANDS:
        say(f"$ kapelle {' '.join(words)}")
        code = subprocess.run(
            [*KAPELLE, *words], cwd=FOLDER, env=os.environ | {"KAPELLE_URL": url}, check=False
        ).returncode
        if code != expected:
            surprises.append(f"Expected kapelle {' '.join(words)} to end with {expected}, but it ended with {code}")
    return surprises


if __name__ == "__main__":
    sys.exit(main())
