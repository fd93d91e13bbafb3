"""A broker that runs from Kafka's jars, as a child of this process."""

import shutil
import signal
import tempfile
import time
from pathlib import Path

from tests.support.brokers import Broker
from tests.support.jars import Installation
from tests.support.processes import LeashedProcess, is_stopped
from tests.support.readiness import wait_until_ready
from tests.support.settings import HOST, BrokerSettings, Ports, free_ports, server_properties, write_properties

STOP_TIMEOUT_S = 20
PAUSE_S = 0.01


class JarBroker(Broker):
    """Its ports, properties, data and log are in a directory of its own, made here and gone after `close`."""

    def __init__(self, installation: Installation, settings: BrokerSettings) -> None:
        self.settings = settings
        self.ports = settings.ports or free_ports()
        self.bootstrap_servers = f"{HOST}:{self.ports.client}"
        self.directory = Path(tempfile.mkdtemp(prefix="kapelle-kafka-"))
        self.log = self.directory / "server.log"
        self._process: LeashedProcess | None = None
        self._command = installation.server(prepare(installation, settings, self.ports, self.directory), settings)

    @property
    def pid(self) -> int | None:
        """The server's process, for measuring what it uses."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._process = process = LeashedProcess(self._command, log=self.log, scratch=self.directory)
        timeout_s = self.settings.start_timeout_s
        try:
            wait_until_ready(self.bootstrap_servers, timeout_s=timeout_s, alive=process.alive, log=self.log.read_text)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        if self._process:
            self._process.stop(STOP_TIMEOUT_S)
        self._process = None

    def kill(self) -> None:
        if self._process:
            self._process.kill()
        self._process = None

    def pause(self) -> None:
        if self._process:
            self._process.signal(signal.SIGSTOP)
            # A signal is on its way for a moment, and the threads that have not heard of it still answer.
            while self._process.alive() and not is_stopped(self._process.pid):
                time.sleep(PAUSE_S)

    def resume(self) -> None:
        if self._process:
            self._process.signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()  # the data goes too, so there is nothing to put in order
        shutil.rmtree(self.directory, ignore_errors=True)


def prepare(installation: Installation, settings: BrokerSettings, ports: Ports, directory: Path) -> Path:
    """Lay out formatted data and the properties that name it; returns the path of the latter. Data there is kept."""
    if not (directory / "data").exists():
        shutil.copytree(installation.formatted, directory / "data")
    properties = directory / "server.properties"
    write_properties(properties, server_properties(settings, ports, str(directory / "data")))
    return properties
