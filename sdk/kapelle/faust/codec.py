"""The bytes of public records for Faust: contracts, by fingerprints or by the ids of a schema registry."""

import os
from typing import TYPE_CHECKING, Final

import httpx

from kapelle.faust.errors import FaustMissing
from kapelle.schemas import Catalog, Codec, Contract, UnknownSchemaId
from kapelle.schemas import contracts as c

if TYPE_CHECKING:
    from faust.types.codecs import CodecT

AUTH_VARIABLE: Final = "KAPELLE_REGISTRY_AUTH"
TIMEOUT_S: Final = 5.0
PUBLIC: Final = (c.WorkflowChange, c.InstanceStatusChange, c.StepStatusChange, c.SignalVerdict, c.AnnounceSignal)


class PublicCodec:
    """Reads public records in both framings, and writes signals. Asks the registry once for each id."""

    def __init__(self, registry: str | None = None) -> None:
        self._codec = Codec(Catalog(PUBLIC))
        self._registry = registry

    def encode(self, value: Contract) -> bytes:
        """The bytes of a value, by its fingerprint: processors read that with a registry and without."""
        return self._codec.encode(value)

    def decode(self, data: bytes) -> Contract:
        """The value of some bytes."""
        try:
            return self._codec.decode(data)
        except UnknownSchemaId:
            if self._registry is None:
                raise
            self._learn(self._registry, int.from_bytes(data[1:5], "big"))
            return self._codec.decode(data)

    def _learn(self, registry: str, schema_id: int) -> None:
        user, colon, password = os.environ.get(AUTH_VARIABLE, "").partition(":")
        auth = (user, password) if colon else None
        answer = httpx.get(f"{registry.rstrip('/')}/schemas/ids/{schema_id}", timeout=TIMEOUT_S, auth=auth)
        self._codec.catalog.learn(answer.raise_for_status().json()["schema"], schema_id=schema_id)


def faust_codec(codec: PublicCodec) -> "CodecT":
    """What Faust calls a codec. Its class is made late: Faust is there with the extra only."""
    try:
        from faust.serializers.codecs import Codec as FaustCodec  # noqa: PLC0415
    except ImportError as error:
        raise FaustMissing(str(error)) from None

    class KapelleCodec(FaustCodec):  # type: ignore[misc, unused-ignore] # without Faust its type is not known
        def _loads(self, s: bytes) -> Contract:
            return codec.decode(s)

        def _dumps(self, s: Contract) -> bytes:
            return codec.encode(s)

    return KapelleCodec()
