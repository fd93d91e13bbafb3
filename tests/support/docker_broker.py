"""A broker that runs in a container."""

from collections.abc import Iterator
from contextlib import contextmanager

from docker.errors import DockerException
from docker.models.containers import Container
from testcontainers.core.container import DockerContainer

from tests.support.brokers import Broker
from tests.support.errors import NoContainer
from tests.support.readiness import wait_until_ready
from tests.support.settings import (
    HOST,
    KAFKA_VERSION,
    BrokerSettings,
    container_environment,
    free_ports,
    server_properties,
)

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
DATA = "/var/lib/kafka/data"
STOP_TIMEOUT_S = 20


class DockerBroker(Broker):
    """The container keeps its data from start to start. Testcontainers removes it should this process die."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self.ports = settings.ports or free_ports()
        self._created = False
        with _translated():
            self._container = DockerContainer(IMAGE)
        found = self._container.get_docker_client().host()
        self.host = HOST if found == "localhost" else found
        self.bootstrap_servers = f"{self.host}:{self.ports.client}"
        for port in (self.ports.client, self.ports.proxied):
            # The same number inside and outside, because the broker tells its clients where it is.
            self._container.with_bind_ports(port, port)
        properties = server_properties(settings, self.ports, DATA, bind="0.0.0.0", advertise=self.host)  # noqa: S104 -- in a container
        self._container.with_envs(**container_environment(properties, settings.heap_mb))

    def start(self) -> None:
        if self._created:
            self._wrapped.start()
        else:
            with _translated():
                self._container.start()
            self._created = True
        wait_until_ready(
            self.bootstrap_servers, timeout_s=self.settings.start_timeout_s, alive=self._is_running, log=self._log
        )

    def stop(self) -> None:
        if self._is_running():
            if self._wrapped.status == "paused":
                self.resume()
            self._wrapped.stop(timeout=STOP_TIMEOUT_S)

    def kill(self) -> None:
        if self._is_running():
            self._wrapped.kill()

    def pause(self) -> None:
        self._wrapped.pause()

    def resume(self) -> None:
        self._wrapped.unpause()

    def close(self) -> None:
        with _translated():
            self._container.stop()

    @property
    def _wrapped(self) -> Container:
        return self._container.get_wrapped_container()

    def _is_running(self) -> bool:
        if not self._created:
            return False
        self._wrapped.reload()
        return str(self._wrapped.status) in {"running", "paused"}

    def _log(self) -> str:
        return str(self._wrapped.logs().decode(errors="replace"))


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever Docker cannot do for us ends in one error: there is another way to a broker."""
    try:
        yield
    except DockerException as error:
        raise NoContainer(IMAGE, str(error)) from error
