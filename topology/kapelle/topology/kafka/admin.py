"""An admin client that can be let go: it has threads, which look for its brokers for as long as anybody holds it."""

from confluent_kafka.admin import AdminClient

from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made


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

    def close(self) -> None:
        self._client = None
