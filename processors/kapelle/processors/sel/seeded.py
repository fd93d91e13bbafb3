"""Random numbers and ids that a replay makes again: both come from a seed and a count."""

from hashlib import sha256
from itertools import count
from uuid import UUID

from kapelle.processors.sel.limits import Extension, Host


def seeded(seed: str, now_ms: int, extension: Extension | None = None) -> Host:
    """A host for one evaluation. The seed should name what is evaluated, such as the step attempt and the parameter."""
    counter = count()

    def digest() -> bytes:
        return sha256(f"{seed}/{next(counter)}".encode("utf-8", "surrogatepass")).digest()

    def random() -> float:
        return int.from_bytes(digest()[:7], "big") / (1 << 56)

    def new_id() -> str:
        return str(UUID(bytes=digest()[:16], version=4))

    return Host(now_ms=now_ms, random=random, new_id=new_id, extension=extension)
