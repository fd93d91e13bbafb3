"""The delay that spreads schedules of the same time: always the same for the same tick."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

SECOND_MS: Final = 1_000


def fuzz_ms(workflow_id: str, trigger_id: str, scheduled_ms: int, max_ms: int) -> int:
    """Whole seconds from 0 to below the maximum, in milliseconds."""
    seconds = -(-max_ms // SECOND_MS)
    if seconds <= 1:
        return 0
    digest = sha256(f"{len(workflow_id)}:{workflow_id}:{trigger_id}:{scheduled_ms}".encode()).digest()
    # 64 bits for at most 86,400 seconds: no second is likelier than another by more than one part in 10^14.
    return int.from_bytes(digest[:8], "big") % seconds * SECOND_MS
