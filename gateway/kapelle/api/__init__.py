"""The HTTP API: `create_app` over a journal and a view, `serve` or `ApiServer` to answer on an address."""

from kapelle.api.app import BASE, create_app
from kapelle.api.auth import Role, Tokens, check_exposure
from kapelle.api.errors import AddressTaken, ApiError, BadTokens, ExposedWithoutTokens
from kapelle.api.server import ApiServer, serve
from kapelle.api.settings import ApiSettings

__all__ = [
    "BASE",
    "AddressTaken",
    "ApiError",
    "ApiServer",
    "ApiSettings",
    "BadTokens",
    "ExposedWithoutTokens",
    "Role",
    "Tokens",
    "check_exposure",
    "create_app",
    "serve",
]
