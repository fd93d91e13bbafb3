"""The errors of a Faust application that uses Kapelle, by who must act.

FaustError
├── caller
│   └── BadSignal           the signal to announce is none
└── operator
    ├── FaustMissing        Faust is not installed
    └── FaustUnfit          Faust cannot be told to read only what was committed
"""


class FaustError(Exception):
    """An error in the combination of Faust and Kapelle."""


class BadSignal(FaustError):
    """The signal is not valid, and would become a dead letter. It is not sent."""


class FaustMissing(FaustError):
    """Faust is not installed."""

    def __init__(self, found: str) -> None:
        super().__init__(f"Expected Faust to be installed, but {found}: pip install 'kapelle[faust]'")


class FaustUnfit(FaustError):
    """This version of Faust would read records of aborted transactions."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(
            f"Expected {expected}, but found {found}: Faust would read uncommitted records. "
            "Install the supported versions: pip install 'kapelle[faust]'"
        )
