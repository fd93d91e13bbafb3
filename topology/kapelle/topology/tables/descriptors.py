"""The limit of open files of a store: half of the limit of its process, which also needs sockets."""

import resource
from typing import Final

OPEN_FILES_MAX: Final = 512
OPEN_FILES_MIN: Final = 32
SHARE: Final = 2


def open_files_max(descriptors: int | None = None) -> int:
    """The files of a store in a process that may have so many descriptors; this one, unless it is said."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if descriptors is None else descriptors
    if soft == resource.RLIM_INFINITY:
        return OPEN_FILES_MAX
    return max(OPEN_FILES_MIN, min(soft // SHARE, OPEN_FILES_MAX))
