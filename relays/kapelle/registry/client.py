"""Asking a registry, as Confluent's API has it. User and password stand in `KAPELLE_REGISTRY_AUTH`."""

import os
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
import msgspec

from kapelle.registry.subjects import Level, Registered
from kapelle.sources.errors import RegistryAway, RegistryRefused
from kapelle.sources.registry import AUTH_VARIABLE

TIMEOUT_S: Final = 10.0
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
CLOSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class RegistryClient:
    """One registry. Raises `RegistryAway` if it does not answer as one, and `RegistryRefused` if it says no."""

    def __init__(self, url: str) -> None:
        user, colon, password = os.environ.get(AUTH_VARIABLE, "").partition(":")
        try:
            self._client = httpx.Client(
                base_url=url,
                timeout=TIMEOUT_S,
                auth=(user, password) if colon else None,
                headers={"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE},
            )
        except (httpx.InvalidURL, TypeError) as error:
            raise RegistryAway(f"Expected the address of a registry, but {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def versions(self, subject: str) -> list[Registered]:
        """All versions of a subject, the oldest first; none if there is no such subject."""
        numbers = self._request("GET", f"/subjects/{_quoted(subject)}/versions") or []
        answers = [self._request("GET", f"/subjects/{_quoted(subject)}/versions/{number}") for number in numbers]
        return [msgspec.convert(answer, Registered) for answer in answers if answer is not None]

    def id_of(self, subject: str, schema: str) -> int | None:
        """The id of a schema under a subject, if it is registered there. Registers nothing."""
        answer = self._request("POST", f"/subjects/{_quoted(subject)}", {"schema": schema})
        return None if answer is None else int(answer["id"])

    def register(self, subject: str, schema: str) -> int:
        """Add a version to a subject; tells the schema's id."""
        answer = self._request("POST", f"/subjects/{_quoted(subject)}/versions", {"schema": schema})
        if answer is None:
            raise RegistryAway(
                f"Expected the registry to take a version of {subject}, but it does not support this request"
            )
        return int(answer["id"])

    def level(self, subject: str) -> str:
        """How a subject may change: as it says itself, or all that do not."""
        config = self._request("GET", f"/config/{_quoted(subject)}?defaultToGlobal=true") or {}
        return str(config.get("compatibilityLevel", ""))

    def set_level(self, subject: str, level: Level) -> None:
        """Say how a subject may change from now on."""
        self._request("PUT", f"/config/{_quoted(subject)}", {"compatibility": level.value})

    def _request(self, method: str, path: str, body: object = None) -> Any:
        """What the registry answers; None for what is not there. Its address is never told: it may hold a password."""
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = self._client.request(method, path, content=content)
        except httpx.HTTPError as error:
            raise RegistryAway(f"Expected the registry to answer, but {type(error).__name__}: {error}") from None
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        if answer.status_code in CLOSED:
            raise RegistryRefused(f"The registry refused {method} {path}: status {answer.status_code}")
        if answer.status_code in (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise RegistryRefused(f"Expected the registry to take {path}, but it says: {_message(answer)}")
        try:
            return msgspec.json.decode(answer.raise_for_status().content)
        except (httpx.HTTPError, msgspec.MsgspecError):
            raise RegistryAway(f"Expected an answer to {path}, but found status {answer.status_code}") from None


def _message(answer: httpx.Response) -> str:
    try:
        return str(msgspec.json.decode(answer.content)["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return answer.text[:200]


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
