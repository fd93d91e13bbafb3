"""Runs a command that must not outlive the process that asked for it.

    python leash.py <parent pid> <directory to remove, or -> <command> ...

It says the pid of the command on its standard output, then waits; what the command says goes to standard error. The
command is killed when the parent is gone, which shows in one of two ways: the pipe on our standard input ends, or we
have been given another parent. The second is for parents that fork: a forked child keeps the pipe open. It is not
asked for by `PR_SET_PDEATHSIG` on the side of the parent, because that signal comes when the *thread* that started us
ends. We have one thread only, so the command gets that signal set for the case that we are killed ourselves.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

LOOK_EVERY_S = 0.1
PR_SET_PDEATHSIG = 1


def main(parent: int, scratch: str, command: list[str]) -> int:
    # A stop signal for the process group (Ctrl-C) is for the parent to act on: it stops the command in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
        preexec_fn=_die_with_us,  # noqa: PLW1509 -- unsafe where there are threads, and here are none
    )
    os.write(1, f"{child.pid}\n".encode())
    os.close(1)
    while child.poll() is None:
        if _parent_is_gone(parent):
            child.kill()
            child.wait()
            if scratch != "-":
                shutil.rmtree(scratch, ignore_errors=True)
    return child.returncode


def _parent_is_gone(parent: int) -> bool:
    """Wait a moment for the end of the parent. Nobody writes to the pipe, so readable means ended."""
    readable, _, _ = select.select([0], [], [], LOOK_EVERY_S)
    return bool(readable) or os.getppid() != parent


def _die_with_us() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
