"""Where steps run: plain functions in threads of their own, async functions on one event loop.

The threads are daemons and nobody waits for them at exit: a step that ignores its cancellation must not keep a process
that has drained from ending. That is why it is not `concurrent.futures`, whose threads are joined at exit.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine

Work = Callable[[], None]


class Threads:
    """Threads that are made when they are needed, and kept. There are never more than were given work at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def start(self, work: Work) -> None:
        """Run something in a thread."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._count += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._count}", daemon=True).start()
        self._queue.put(work)

    def close(self) -> None:
        """Let the threads end when they have done what they are doing."""
        for _ in range(self._count):
            self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
            del work  # or what it holds would live until the next one comes
            with self._lock:
                self._idle += 1


class Loop:
    """An event loop in a thread of its own, begun when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], Coroutine[object, object, None]], begun: Callable[[Work], None]) -> None:
        """Run a coroutine. `begun` is told, in the loop, how it can be cancelled from any thread."""
        loop = self._running()

        def begin() -> None:
            task = loop.create_task(work())
            begun(lambda: self._call(task.cancel))

        loop.call_soon_threadsafe(begin)

    def close(self, wait_s: float) -> None:
        """End the loop, and what still runs on it."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._call(loop.stop)
        thread.join(wait_s)

    def _call(self, function: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._serve, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:  # one turn to hear of it; who ignores that is left behind
                loop.run_until_complete(asyncio.wait(left, timeout=0.1))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
