"""Makes Faust read only committed records. Without this, Faust does so only in its mode `exactly_once`.

Kapelle publishes within transactions. Some are aborted, when a process dies or loses its partitions; what they held was
never said, and its numbers are given to other records. A reader of uncommitted records takes it for true.
"""

from typing import TYPE_CHECKING, Final

from kapelle.faust.errors import FaustMissing, FaustUnfit

if TYPE_CHECKING:
    from faust.types import AppT, TransportT

ISOLATION: Final = "_isolation_level"


def committed_transport(app: "AppT") -> "TransportT":
    """The transport for an application's consumers. Its classes are made late: Faust is there with the extra only."""
    try:
        from faust.transport.drivers import aiokafka as driver  # noqa: PLC0415
    except ImportError as error:
        raise FaustMissing(str(error)) from None
    transport = app.transport
    if getattr(transport, "reads_committed", False):
        return transport
    if type(transport) is not driver.Transport:
        raise FaustUnfit("a broker address of aiokafka (kafka://…)", type(transport).__module__)

    class CommittedThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc, unused-ignore] # see below
        def _create_worker_consumer(self, transport: object) -> object:
            return read_committed(super()._create_worker_consumer(transport))

    class CommittedConsumer(driver.Consumer):  # type: ignore[misc, unused-ignore] # without Faust its type is not known
        def _new_consumer_thread(self) -> object:
            return CommittedThread(self, loop=self.loop, beacon=self.beacon)

    class CommittedTransport(driver.Transport):  # type: ignore[misc, unused-ignore] # as above
        Consumer = CommittedConsumer
        reads_committed = True

    return CommittedTransport(app.conf.broker_consumer, app)


def read_committed(consumer: object) -> object:
    """A consumer of aiokafka that has not been started, and from now on passes over what was not committed."""
    if not hasattr(consumer, ISOLATION):
        raise FaustUnfit(f"a consumer with {ISOLATION}", f"{type(consumer).__module__} without it")
    setattr(consumer, ISOLATION, "read_committed")
    return consumer
