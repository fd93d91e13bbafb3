"""An admin client that can be let go: it has threads, which look for its brokers for as long as anybody holds it."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient

from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated


class Admin:
    """Holds one client until `close`. Who asks for it after that gets another."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._config = settings.admin()
        self._client: AdminClient | None = made(AdminClient, self._config)

    @property
    def client(self) -> AdminClient:
        if self._client is None:
            self._client = made(AdminClient, self._config)
        return self._client

    @contextmanager
    def asking(self, doing: str) -> Iterator[AdminClient]:
        """The client, for one question. A client that gets no answer is let go, and the next question has another.

        It does not look for its brokers again by itself: it goes on asking by a leader's old epoch after an election,
        and goes on asking the broker that it knows as the controller while that one is away.
        """
        try:
            with translated(doing):
                yield self.client
        except CycleAborted:
            self.close()
            raise

    def close(self) -> None:
        self._client = None
