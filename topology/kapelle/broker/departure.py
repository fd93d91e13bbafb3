"""Leaving a group, in a thread: librdkafka sets no limit to how long that takes, but a stop must have one.

While a group waits for members that died, the broker answers nobody who is joining it, not even those that leave. A
member that has not left by its limit is removed when its session ends.
"""

import threading
from collections.abc import Callable


def leave(close: Callable[[], object], name: str) -> threading.Thread:
    """Close a consumer in a daemon thread, which the caller joins for as long as it can wait."""
    thread = threading.Thread(target=close, name=f"leave-{name}", daemon=True)
    thread.start()
    return thread
