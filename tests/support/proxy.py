"""A proxy that understands just enough of Kafka's protocol to lose the very message that a test needs lost.

    with Proxy(broker) as proxy:
        producer = Producer({"bootstrap.servers": broker.proxied_servers, ...})
        loss = proxy.lose_next(END_TXN, then=Then.REFUSE)     # the broker commits, and nobody is told
        producer.commit_transaction(5)                        # raises: the outcome is unknown
        proxy.accept()

It sits between the second listener of a broker and the port that clients of this listener are told. Every message is a
length and that many bytes; a request begins with its kind, version and number, a response with the number of its
request. All state belongs to one event loop on one thread; the methods of `Proxy` may be called from any other.

What confluent-kafka 2.16.1 makes of it (tests/integration/test_proxy.py holds it to this):

- A connection reset is not an answer: it sends EndTxn again on a new connection, and the broker answers a repeated
  commit like the first. So a lost response alone, or a lost request alone, ends in a commit that succeeded.
- Refused until `commit_transaction(timeout)` has run out, it raises `_TIMED_OUT`: retriable, not abortable, not fatal,
  the same whether the broker has committed (lost response) or not (lost request). This is the unknown outcome.
- Then `abort_transaction` is refused with `_CONFLICT`, because a commit is still in progress; the old producer goes on
  trying in the background, and will commit if it gets through before a new producer of the same id has called
  `init_transactions`. From that call on the outcome is settled: the old one is `_FENCED`, fatal.
"""

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.support.brokers import Broker
from tests.support.settings import HOST

PRODUCE = 0
FETCH = 1
INIT_PRODUCER_ID = 22
ADD_PARTITIONS_TO_TXN = 24
ADD_OFFSETS_TO_TXN = 25
END_TXN = 26
TXN_OFFSET_COMMIT = 28

FRAME_BYTES_MAX = 256 * 1024 * 1024
CONTROL_TIMEOUT_S = 10.0
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of no time: the other side sees a reset, not a good end

T = TypeVar("T")


class Part(StrEnum):
    """What is lost: the request, so that the broker never hears of it, or the response, when it has done its work."""

    REQUEST = "request"
    RESPONSE = "response"


class Then(StrEnum):
    """What comes after the loss."""

    CUT = "cut"  # the connection is reset; the client may come back at once and ask again
    REFUSE = "refuse"  # all connections are reset, and new ones too, until `accept`


class Loss:
    """A message that is to be lost. `happened` is set when it has been."""

    def __init__(self, api_key: int, part: Part, then: Then) -> None:
        self.api_key = api_key
        self.part = part
        self.then = then
        self.happened = threading.Event()


class Link:
    """One client's connection and ours to the broker on its behalf."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.client = client
        self.broker = broker
        self.doomed: dict[int, Loss] = {}  # by the number of the request whose response must not arrive

    def reset(self) -> None:
        for side in (self.client, self.broker):
            _reset(side)


class Proxy:
    """From `broker.proxy_port` to `broker.proxied_port`, until `stop`."""

    def __init__(self, broker: Broker) -> None:
        self.port = broker.proxy_port
        self.upstream = (broker.host, broker.proxied_port)
        self.seen: Counter[int] = Counter()  # requests by kind, for a test to see that a client did come back
        self._links: set[Link] = set()
        self._losses: list[Loss] = []
        self._delays_s: dict[int, float] = {}
        self._refusing = False
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def start(self) -> None:
        self._flowing.set()
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, HOST, self.port))

    def stop(self) -> None:
        self._run(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONTROL_TIMEOUT_S)
        self._loop.close()

    def lose_next(self, api_key: int, *, part: Part = Part.RESPONSE, then: Then = Then.CUT) -> Loss:
        """Lose the next message of this kind, once."""
        loss = Loss(api_key, part, then)
        self._call(lambda: self._losses.append(loss))
        return loss

    def delay(self, api_key: int, seconds: float) -> None:
        """Hold requests of this kind, and what comes after them on their connection, for so long. 0 ends it."""
        self._call(lambda: self._delays_s.update({api_key: seconds}))

    def cut(self) -> None:
        """Reset every connection. Clients may come back at once."""
        self._call(self._reset_all)

    def refuse(self) -> None:
        """Reset every connection, and every new one, until `accept`."""
        self._call(self._refuse)

    def accept(self) -> None:
        """End what `refuse` or `Then.REFUSE` began."""
        self._call(lambda: setattr(self, "_refusing", False))

    def stall(self) -> None:
        """Forward nothing and close nothing, as a network that swallows everything, until `flow`."""
        self._call(self._flowing.clear)

    def flow(self) -> None:
        """End what `stall` began; what was held goes on its way."""
        self._call(self._flowing.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            _reset(writer)
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self.upstream)
        except OSError:
            _reset(writer)  # the broker is down, and so are we
            return
        link = Link(writer, upstream_writer)
        self._links.add(link)
        pumps = (self._pump_requests(reader, link), self._pump_responses(upstream_reader, link))
        tasks = [self._loop.create_task(pump) for pump in pumps]
        # The end of one direction is the end of both.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        link.reset()
        await asyncio.wait(tasks)
        self._links.discard(link)

    async def _pump_requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        while frame := await _read_frame(reader):
            api_key, _version, number = struct.unpack_from(">hhi", frame, 4)
            self.seen[api_key] += 1
            if delay_s := self._delays_s.get(api_key):
                await asyncio.sleep(delay_s)
            await self._flowing.wait()
            if loss := self._take_loss(api_key):
                if loss.part is Part.REQUEST:
                    self._lose(loss, link)
                    return
                link.doomed[number] = loss
            if not await _write(link.broker, frame):
                return

    async def _pump_responses(self, reader: asyncio.StreamReader, link: Link) -> None:
        while frame := await _read_frame(reader):
            (number,) = struct.unpack_from(">i", frame, 4)
            await self._flowing.wait()
            if loss := link.doomed.pop(number, None):
                self._lose(loss, link)
                return
            if not await _write(link.client, frame):
                return

    def _take_loss(self, api_key: int) -> Loss | None:
        found = next((loss for loss in self._losses if loss.api_key == api_key), None)
        if found:
            self._losses.remove(found)
        return found

    def _lose(self, loss: Loss, link: Link) -> None:
        if loss.then is Then.REFUSE:
            self._refuse()
        link.reset()
        loss.happened.set()

    def _refuse(self) -> None:
        self._refusing = True
        self._reset_all()

    def _reset_all(self) -> None:
        for link in self._links:
            link.reset()

    async def _shut(self) -> None:
        self._server.close()
        self._flowing.set()
        self._reset_all()
        while self._links:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # closed sockets are let go in the next turn of the loop

    def _call(self, change: Callable[[], object]) -> None:
        async def called() -> None:
            change()

        self._run(called())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CONTROL_TIMEOUT_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next message with its length before it; nothing at the end of the connection, good or bad."""
    try:
        prefix = await reader.readexactly(4)
        (length,) = struct.unpack(">i", prefix)
        if not 0 < length <= FRAME_BYTES_MAX:
            return b""  # not Kafka
        return prefix + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError):
        return b""


async def _write(writer: asyncio.StreamWriter, frame: bytes) -> bool:
    """Whether the other side could still be written to."""
    try:
        writer.write(frame)
        await writer.drain()
    except OSError:
        return False
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.transport.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        writer.transport.abort()
