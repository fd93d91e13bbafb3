"""Serving the API from a command: the tokens, and the exit codes of the API's own errors."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kapelle.cli.errors import AddressTaken, BadFile, WrongServer

if TYPE_CHECKING:
    from kapelle.api import ApiSettings


def api_settings(tokens: Path | None, hooks: Path | None = None) -> "ApiSettings":
    """Settings with the tokens and hooks of files, or of the environment."""
    from kapelle.api import ApiSettings, Tokens  # noqa: PLC0415 - FastAPI is slow to import
    from kapelle.sources import BadSources  # noqa: PLC0415
    from kapelle.sources.endpoints import Endpoints  # noqa: PLC0415
    from kapelle.sources.hooks import Hooks  # noqa: PLC0415

    try:
        watched = None if hooks is None else Endpoints(hooks)
        known = Hooks.of() if watched is None else watched.hooks
    except BadSources as error:
        raise BadFile(str(error)) from error
    return ApiSettings(
        tokens=Tokens.from_environment() if tokens is None else Tokens.from_file(tokens),
        hooks=known,
        sns=None if watched is None else watched.sns,
        endpoints=watched,
    )


@contextmanager
def reloading(settings: "ApiSettings") -> Iterator[Callable[[], None]]:
    """What is to be called now and then, so that the file of --hooks is followed; on SIGHUP it is read at once."""
    watched = settings.endpoints
    if watched is None:
        yield lambda: None
        return
    before = signal.signal(signal.SIGHUP, lambda *_: watched.ask())
    try:
        yield watched.look
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def serving_api() -> Iterator[None]:
    """What keeps the API from being served, as errors of the command."""
    from kapelle.api import AddressTaken as Taken  # noqa: PLC0415 - FastAPI is slow to import
    from kapelle.api import ApiError  # noqa: PLC0415

    try:
        yield
    except Taken as error:
        raise AddressTaken(f"{error}: use another --port") from error
    except ApiError as error:
        raise WrongServer(str(error)) from error
