"""A broker as tests see it, whatever it runs on."""

import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.errors import NotOurBroker
from tests.support.settings import HOST, Ports

TOPIC_TIMEOUT_S = 30


class Broker(ABC):
    """One Kafka node. Its addresses and its data stay the same from the first start to `close`.

    `bootstrap_servers` is the way for most. `proxy_port` is what clients of the second listener are told, and
    `proxied_port` is where that listener is: a proxy from the one to the other sees all that these clients say.
    """

    bootstrap_servers: str
    host: str = HOST
    ports: Ports

    @abstractmethod
    def start(self) -> None:
        """Start and return when the admin API answers."""

    @abstractmethod
    def stop(self) -> None:
        """Stop in good order, keeping the data."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once (SIGKILL), keeping what it had written."""

    @abstractmethod
    def pause(self) -> None:
        """Stop the clock for it (SIGSTOP): connections stay open and nothing is answered."""

    @abstractmethod
    def resume(self) -> None:
        """Let it go on after `pause`."""

    @abstractmethod
    def close(self) -> None:
        """End it for good and forget its data."""

    def restart(self) -> None:
        """Stop, unless it is down already, and start on the same ports and data."""
        self.stop()
        self.start()

    @property
    def proxied_port(self) -> int:
        return self.ports.proxied

    @property
    def proxy_port(self) -> int:
        return self.ports.proxy

    @property
    def proxied_servers(self) -> str:
        """The bootstrap address of clients that go through a proxy."""
        return f"{HOST}:{self.proxy_port}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def create_topic(self, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        """Create a topic and return its name once its partitions have leaders: the first record then goes through."""
        admin = self.admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(TOPIC_TIMEOUT_S)
        deadline = time.monotonic() + TOPIC_TIMEOUT_S
        while time.monotonic() < deadline:
            described = admin.list_topics(name, timeout=TOPIC_TIMEOUT_S).topics[name].partitions.values()
            if len(described) == partitions and all(p.leader >= 0 for p in described):
                return name
            time.sleep(0.02)
        raise TimeoutError(f"Expected {partitions} partitions of {name!r} to have leaders, but found {described!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class GivenBroker(Broker):
    """A broker that others run, given by its address. It can be used, and nothing else."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def start(self) -> None:
        raise NotOurBroker(self.bootstrap_servers, "start")

    def stop(self) -> None:
        raise NotOurBroker(self.bootstrap_servers, "stop")

    def kill(self) -> None:
        raise NotOurBroker(self.bootstrap_servers, "be killed")

    def pause(self) -> None:
        raise NotOurBroker(self.bootstrap_servers, "pause")

    def resume(self) -> None:
        raise NotOurBroker(self.bootstrap_servers, "resume")

    def close(self) -> None:
        """Nothing of it is ours."""

    @property
    def proxied_port(self) -> int:
        raise NotOurBroker(self.bootstrap_servers, "listen behind a proxy")

    @property
    def proxy_port(self) -> int:
        raise NotOurBroker(self.bootstrap_servers, "listen behind a proxy")
