"""simpleeval and cel-python, from an environment of their own that is made when it is missing."""

import importlib
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parents[1] / ".cache" / "venv-sel"
PACKAGES = ("simpleeval==1.0.8", "cel-python==0.5.0")


class Peers:
    """Prepared calls of the peers."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._simpleeval: Any = importlib.import_module("simpleeval")
        self._celpy: Any = importlib.import_module("celpy")
        self._inputs = dict(inputs)

    def simpleeval(self, expression: str) -> Callable[[], Any]:
        """At its best: one evaluator, the expression parsed beforehand."""
        evaluator = self._simpleeval.SimpleEval(names=self._inputs)
        parsed = evaluator.parse(expression)
        return lambda: evaluator.eval(expression, previously_parsed=parsed)

    def simpleeval_unprepared(self, expression: str) -> Callable[[], Any]:
        """As its documentation begins: a text each time."""
        return lambda: self._simpleeval.simple_eval(expression, names=self._inputs)

    def cel(self, expression: str) -> Callable[[], Any]:
        """At its best: the program compiled and the values converted beforehand."""
        environment = self._celpy.Environment()
        program = environment.program(environment.compile(expression))
        activation = self._celpy.json_to_cel(self._inputs)
        return lambda: program.evaluate(activation)


def prepare(inputs: Mapping[str, Any]) -> Peers:
    """The peers, imported from here if they are installed, else from their environment."""
    try:
        return Peers(inputs)
    except ImportError:
        _install()
        # After our own packages, so that what both need is the version that we run with.
        sys.path.append(sysconfig.get_path("purelib", vars={"base": str(ENVIRONMENT), "platbase": str(ENVIRONMENT)}))
        return Peers(inputs)


def _install() -> None:
    python = ENVIRONMENT / "bin" / "python"
    marker = ENVIRONMENT / "installed.txt"
    wanted = "\n".join((sys.version, *PACKAGES))
    if marker.exists() and marker.read_text() == wanted:
        return
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    command = [os.fspath(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(command, check=True, stdout=sys.stderr)
    marker.write_text(wanted)
