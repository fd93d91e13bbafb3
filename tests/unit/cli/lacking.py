"""A module that needs another one, which is not there."""

import no_such_package  # type: ignore[import-not-found]  # noqa: F401
