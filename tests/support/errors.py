"""What can be wrong with the broker that tests run on, by who must act.

SupportError
├── operator: whoever runs the tests
│   ├── NoBroker            no way to a broker works on this machine; says what was tried
│   ├── NoContainer         Docker answers, but cannot give us a container: no image, no rights
│   ├── NoClient            a program that the documents show is missing, and cannot be installed
│   ├── CommandFailed       a tool that we ran (mvn, apt-get, java, docker) failed; holds the end of its output
│   └── BrokerDidNotStart   the server is there but does not answer; holds the end of its log
└── caller: the author of a test
    └── NotOurBroker        a broker that others run is not ours to kill, pause or stop
"""

from collections.abc import Sequence

TAIL_LINES_MAX = 40


class SupportError(Exception):
    """Anything wrong with what the tests stand on."""


class NoBroker(SupportError):
    """No broker can be had. The message lists what was tried and why it did not work."""

    def __init__(self, tried: Sequence[str]) -> None:
        listed = tried[0] if len(tried) == 1 else "".join(f"\n  - {reason}" for reason in tried)
        super().__init__(f"Expected a way to a Kafka broker, but found none: {listed}")
        self.tried = tuple(tried)


class NoContainer(SupportError):
    """Docker answers, but a container could not be made."""

    def __init__(self, image: str, reason: str) -> None:
        super().__init__(f"Expected Docker to run {image}, but it said: {reason}")
        self.image = image
        self.reason = reason


class NoClient(SupportError):
    """A program that the documents show is not here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Expected {name}, but found none, and we are not root on a machine with apt: install it")
        self.name = name


class CommandFailed(SupportError):
    """A tool that we ran failed."""

    def __init__(self, command: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"Expected `{' '.join(command)}` to succeed, but it ended with {code}:\n{tail(output)}")
        self.command = tuple(command)
        self.code = code
        self.output = output


class BrokerDidNotStart(SupportError):
    """The server ended, or did not answer in time."""

    def __init__(self, address: str, found: str, log: str) -> None:
        super().__init__(
            f"Expected the broker on {address} to answer, but {found}; the end of its log:\n{tail(log) or '(empty)'}"
        )
        self.address = address
        self.found = found
        self.log = log


class NotOurBroker(SupportError):
    """The broker was given by address: its processes are not ours."""

    def __init__(self, address: str, operation: str) -> None:
        super().__init__(
            f"Expected a broker that we started, but {address} was given by address: it cannot be told to {operation}; "
            "ask for `private_broker` instead"
        )
        self.address = address
        self.operation = operation


def tail(text: str) -> str:
    """The last lines of a log: enough to see the cause, short enough for a terminal."""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES_MAX:])
