"""What can be wrong with a Faust application that uses Kapelle, by who must act.

FaustError
├── caller
│   └── BadSignal           the signal to announce is none
└── operator
    ├── FaustMissing        Faust is not installed
    └── FaustUnfit          Faust cannot be told to read only what was committed
"""


class FaustError(Exception):
    """Anything wrong with how Faust and Kapelle are put together."""


class BadSignal(FaustError):
    """The signal would only become a dead letter: it is refused before it is sent."""


class FaustMissing(FaustError):
    """Faust is not installed."""

    def __init__(self, found: str) -> None:
        super().__init__(f"Expected Faust to be installed, but {found}: pip install 'kapelle[faust]'")


class FaustUnfit(FaustError):
    """Faust would read records of transactions that were aborted, which never happened."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(
            f"Expected {expected}, but found {found}: with it Faust would read what was never committed. "
            "Install the versions that Kapelle names: pip install 'kapelle[faust]'"
        )
