"""Waiting for the view: whoever waits names the news, and is woken when it has come, in whatever loop or thread.

A waiter subscribes first and looks then, so that nothing can happen unseen between the two.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

Wake = Callable[[], None]


class Noticeboard:
    """Tells waiters of news. Any thread may tell and wait."""

    def __init__(self) -> None:
        # Re-entrant: a signal handler may tell everyone while its own thread is in here.
        self._lock = threading.RLock()
        self._waiters: dict[str, dict[int, Wake]] = {}
        self._numbers = iter(range(1 << 62))

    @contextmanager
    def subscribed(self, news: Iterable[str], wake: Wake) -> Iterator[None]:
        """Within the block, `wake` is called (by the thread that tells) whenever one of these is told."""
        names = tuple(news)
        with self._lock:
            number = next(self._numbers)
            for name in names:
                self._waiters.setdefault(name, {})[number] = wake
        try:
            yield
        finally:
            with self._lock:
                for name in names:
                    waiters = self._waiters[name]
                    del waiters[number]
                    if not waiters:
                        del self._waiters[name]

    @property
    def is_looked_at(self) -> bool:
        """Whether anybody waits for anything."""
        return bool(self._waiters)

    def tell(self, news: Iterable[str]) -> None:
        """Wake everyone who waits for one of these."""
        with self._lock:
            wakes = {number: wake for name in news for number, wake in self._waiters.get(name, {}).items()}
        for wake in wakes.values():
            wake()

    def tell_all(self) -> None:
        """Wake everyone: nothing more will come."""
        with self._lock:
            names = list(self._waiters)
        self.tell(names)
