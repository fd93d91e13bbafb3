"""Errors of a view, by who must act.

ViewError
├── caller: BadCursor        a cursor that no page of this list gave out
└── operator: ViewFailed     folding has stopped: the cause is chained, and a restart goes on where it stopped
    └── ViewDamaged          its file is damaged, and it is being made again from the log: ask again later
"""


class ViewError(Exception):
    """Anything wrong with a view."""


class BadCursor(ViewError):
    """A cursor that is not from a page of this list."""

    def __init__(self, found: str) -> None:
        super().__init__(f"Expected a cursor of a page of this list, but found {found[:80]!r}")


class ViewFailed(ViewError):
    """The view does not move on any more."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(self._text(cause))
        self.__cause__ = cause

    def _text(self, cause: BaseException) -> str:
        return f"Expected the view to follow the log, but it stopped: {type(cause).__name__}: {cause}"


class ViewDamaged(ViewFailed):
    """The file of the view is damaged. It is a cache, and is made again from the log."""

    def _text(self, cause: BaseException) -> str:
        return (
            f"Expected the file of the view to be readable, but it is damaged ({cause}): it is being rebuilt from the "
            "log. Retry later"
        )
