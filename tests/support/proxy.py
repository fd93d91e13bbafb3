"""A proxy that understands just enough of Kafka's protocol to lose the very message that a test needs lost.

    with Proxy(broker) as proxy:
        producer = Producer({"bootstrap.servers": broker.proxied_servers, ...})
        loss = proxy.lose_next(END_TXN, then=Then.REFUSE)     # the broker commits, and nobody is told
        producer.commit_transaction(5)                        # raises: the outcome is unknown
        proxy.accept()

It sits between the second listener of a broker and the port that clients of this listener are told. Every message is a
length and that many bytes; a request begins with its kind, version and number, a response with the number of its
request. Each connection has two threads, one for each direction; the methods of `Proxy` may be called from any.

What confluent-kafka 2.16.1 makes of it (tests/integration/test_proxy.py holds it to this):

- A connection reset is not an answer: it sends EndTxn again on a new connection, and the broker answers a repeated
  commit like the first. So a lost response alone, or a lost request alone, ends in a commit that succeeded.
- Refused until `commit_transaction(timeout)` has run out, it raises `_TIMED_OUT`: retriable, not abortable, not fatal,
  the same whether the broker has committed (lost response) or not (lost request). This is the unknown outcome.
- Then `abort_transaction` is refused with `_CONFLICT`, because a commit is still in progress; the old producer goes on
  trying in the background, and will commit if it gets through before a new producer of the same id has called
  `init_transactions`. From that call on the outcome is settled: the old one is `_FENCED`, fatal.
"""

import socket
import struct
import threading
from collections import Counter
from enum import StrEnum
from types import TracebackType
from typing import Self

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
ACCEPT_SLICE_S = 0.1
CONNECT_TIMEOUT_S = 10.0


class Part(StrEnum):
    """What is lost: the request, so that the broker never hears of it, or the response, when it has done its work."""

    REQUEST = "request"
    RESPONSE = "response"


class Then(StrEnum):
    """What comes after the loss."""

    CUT = "cut"  # the connection ends; the client may come back at once and ask again
    REFUSE = "refuse"  # all connections end, and new ones too, until `accept`


class Loss:
    """A message that is to be lost. `happened` is set when it has been."""

    def __init__(self, api_key: int, *, part: Part, then: Then, naming: str) -> None:
        self.api_key = api_key
        self.part = part
        self.then = then
        self.naming = naming.encode()
        self.happened = threading.Event()

    def is_about(self, api_key: int, request: bytes) -> bool:
        return api_key == self.api_key and self.naming in request


class Link:
    """One client's connection and ours to the broker on its behalf."""

    def __init__(self, client: socket.socket, broker: socket.socket) -> None:
        self.client = client
        self.broker = broker
        self.doomed: dict[int, Loss] = {}  # by the number of the request whose response must not arrive

    def cut(self) -> None:
        """End both connections and wake whoever waits for them. The sockets are closed once nobody does."""
        for side in (self.client, self.broker):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has ended already, which is all that is wanted


class Proxy:
    """From `broker.proxy_port` to `broker.proxied_port`, until `stop`."""

    def __init__(self, broker: Broker) -> None:
        self.port = broker.proxy_port
        self.upstream = (broker.host, broker.proxied_port)
        self.seen: Counter[int] = Counter()  # requests by kind, for a test to see that a client did come back
        self._lock = threading.Lock()  # for all that follows
        self._links: set[Link] = set()
        self._losses: list[Loss] = []
        self._delays_s: dict[int, float] = {}
        self._refusing = False
        self._threads: set[threading.Thread] = set()
        self._flowing = threading.Event()
        self._stopping = threading.Event()

    def start(self) -> None:
        self._flowing.set()
        self._listener = socket.create_server((HOST, self.port))
        # Closing a socket does not wake a thread that waits for it to accept, so that thread looks up now and then.
        self._listener.settimeout(ACCEPT_SLICE_S)
        self._listening = threading.Thread(target=self._listen, name="proxy")
        self._listening.start()

    def stop(self) -> None:
        """End every connection, and return when no thread and no socket of ours is left."""
        self._stopping.set()
        self._flowing.set()
        self._listening.join()
        self._listener.close()
        self.cut()
        for thread in list(self._threads):
            thread.join()

    def lose_next(self, api_key: int, *, part: Part = Part.RESPONSE, then: Then = Then.CUT, naming: str = "") -> Loss:
        """Lose the next message of this kind, once; where several clients come, the next that names this one."""
        loss = Loss(api_key, part=part, then=then, naming=naming)
        with self._lock:
            self._losses.append(loss)
        return loss

    def delay(self, api_key: int, seconds: float) -> None:
        """Hold requests of this kind, and what comes after them on their connection, for so long. 0 ends it."""
        with self._lock:
            self._delays_s[api_key] = seconds

    def cut(self) -> None:
        """End every connection. Clients may come back at once."""
        with self._lock:
            for link in self._links:
                link.cut()

    def refuse(self) -> None:
        """End every connection, and every new one, until `accept`."""
        with self._lock:
            self._refusing = True
        self.cut()

    def accept(self) -> None:
        """End what `refuse` or `Then.REFUSE` began."""
        with self._lock:
            self._refusing = False

    def stall(self) -> None:
        """Forward nothing and close nothing, as a network that swallows everything, until `flow`."""
        self._flowing.clear()

    def flow(self) -> None:
        """End what `stall` began; what was held goes on its way."""
        self._flowing.set()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._serve, args=(client,), name="proxy-requests")
            self._threads = {t for t in self._threads if t.is_alive()} | {thread}
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection to its end. The end of one direction is the end of both."""
        with client:
            try:
                broker = socket.create_connection(self.upstream, CONNECT_TIMEOUT_S)
            except OSError:
                return  # the broker is down, and so are we
            with broker:
                for side in (client, broker):
                    side.settimeout(None)
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = Link(client, broker)
                if self._admit(link):
                    responses = threading.Thread(target=self._pump_responses, args=(link,), name="proxy-responses")
                    responses.start()
                    self._pump_requests(link)
                    responses.join()
                    with self._lock:
                        self._links.discard(link)

    def _admit(self, link: Link) -> bool:
        with self._lock:
            if self._refusing or self._stopping.is_set():
                return False
            self._links.add(link)
            return True

    def _pump_requests(self, link: Link) -> None:
        while frame := _read_frame(link.client):
            api_key, _version, number = struct.unpack_from(">hhi", frame, 4)
            with self._lock:
                self.seen[api_key] += 1
                delay_s = self._delays_s.get(api_key, 0.0)
            self._stopping.wait(delay_s)
            self._flowing.wait()
            loss = self._take_loss(api_key, frame)
            if loss and loss.part is Part.RESPONSE:
                link.doomed[number] = loss
            elif loss:
                self._lose(loss, link)
                break
            if not _write(link.broker, frame):
                break
        link.cut()

    def _pump_responses(self, link: Link) -> None:
        while frame := _read_frame(link.broker):
            (number,) = struct.unpack_from(">i", frame, 4)
            self._flowing.wait()
            if loss := link.doomed.pop(number, None):
                self._lose(loss, link)
                break
            if not _write(link.client, frame):
                break
        link.cut()

    def _take_loss(self, api_key: int, request: bytes) -> Loss | None:
        with self._lock:
            found = next((loss for loss in self._losses if loss.is_about(api_key, request)), None)
            if found:
                self._losses.remove(found)
            return found

    def _lose(self, loss: Loss, link: Link) -> None:
        if loss.then is Then.REFUSE:
            self.refuse()
        link.cut()
        loss.happened.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def _read_frame(side: socket.socket) -> bytes:
    """The next message with its length before it; nothing at the end of the connection, good or bad."""
    prefix = _read(side, 4)
    length = int.from_bytes(prefix, "big")
    if not 0 < length <= FRAME_BYTES_MAX:
        return b""  # the end, or not Kafka
    body = _read(side, length)
    return prefix + body if body else b""


def _read(side: socket.socket, size: int) -> bytes:
    """So many bytes, or none if the connection ends before."""
    found = bytearray()
    try:
        while len(found) < size:
            if not (piece := side.recv(min(size - len(found), 1 << 20))):
                return b""
            found += piece
    except OSError:
        return b""
    return bytes(found)


def _write(side: socket.socket, frame: bytes) -> bool:
    """Whether the other side could still be written to."""
    try:
        side.sendall(frame)
    except OSError:
        return False
    return True
