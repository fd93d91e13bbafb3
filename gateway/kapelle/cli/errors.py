"""The errors of commands: each has an exit code and a message that says what was expected and what was found.

    CommandError
    ├── 1 failure
    │   ├── AppFailed            the module or function behind --app raised
    │   ├── BadDefinition        a definition that cannot be pushed
    │   ├── EndedOtherwise       what was watched has ended, but not well
    │   ├── TablesDiffer         the live tables are not the fold of the history
    │   └── Refused              the server does not take a request
    ├── 2 usage
    │   ├── BadReference         --app is not MODULE:ATTRIBUTE
    │   ├── NotATopology         what --app names is something else, or cannot take the options given
    │   ├── NoServers            nothing says where Kafka is
    │   ├── RegistryMissing      nothing says where the schema registry is
    │   ├── BadProperty          -X or the file of --config holds something other than name=value
    │   ├── BadClientSetting     librdkafka does not take a setting
    │   ├── BadFile              a file that cannot be read, or not as what its name says
    │   ├── BadSalvage           --salvage without a directory
    │   ├── BadParam             --param is not NAME=VALUE
    │   ├── BadRecord            --set-aside is not TOPIC-PARTITION@OFFSET
    │   ├── NotAWorker           what is named as a worker is something else, or has no steps
    │   └── WrongServer          the URL is none, or what answers there is not Kapelle; tokens that cannot be used
    ├── 3 not found
    │   ├── AppMissing           no such module or attribute
    │   ├── UnknownProcessor     no such processor in the topology
    │   ├── NoDeadLetters        the topic of dead letters is not there
    │   └── NotThere             the server does not have what was named
    ├── 4 precondition
    │   ├── TopicsWrong          topics are not as the topology needs them
    │   ├── NothingToRun         the topology has no processors
    │   ├── SchemasDiffer        the registry has other schemas than those of public topics, or refuses ours
    │   ├── AddressTaken         something else listens where we should
    │   ├── DataInUse            another process has the directory of `kapelle dev`
    │   ├── DataDamaged          files of the log of `kapelle dev` cannot be read
    │   └── InTheWay             the server refuses as things are; or the token does not allow it
    └── 5 unavailable
        ├── Unreachable          no broker answers
        ├── RegistryWrong        no schema registry answers
        └── NotInTime            no server answers, or not in time

Errors of the layers below get their codes in `kapelle.cli.failures`, and nowhere else: it is loaded when there is one.
"""

import traceback
from enum import IntEnum
from typing import ClassVar, Final


class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    PRECONDITION = 4
    UNAVAILABLE = 5


MEANINGS: Final = {
    ExitCode.OK: "success",
    ExitCode.FAILURE: "failure: the message gives the reason",
    ExitCode.USAGE: "wrong command line or setting",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.PRECONDITION: "a precondition is not met: fix it first, a retry does not help",
    ExitCode.UNAVAILABLE: "the broker or the server did not answer in time: try again",
}


class CommandError(Exception):
    """A command that cannot be carried out."""

    code: ClassVar[ExitCode] = ExitCode.FAILURE


class AppFailed(CommandError):
    """The code behind --app raised."""


class BadDefinition(CommandError):
    """A definition that cannot be pushed."""


class EndedOtherwise(CommandError):
    """What was watched has ended, but not well."""


class TablesDiffer(CommandError):
    """The live tables are not the fold of the history."""


class Refused(CommandError):
    """The server does not take a request."""


class BadFile(CommandError):
    """A file that cannot be read, or not as what its name says."""

    code = ExitCode.USAGE


class BadSalvage(CommandError):
    """There is no directory to salvage."""

    code = ExitCode.USAGE


class BadParam(CommandError):
    """A parameter that is not NAME=VALUE."""

    code = ExitCode.USAGE


class BadRecord(CommandError):
    """A record that is not TOPIC-PARTITION@OFFSET."""

    code = ExitCode.USAGE

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Expected a record such as kapelle.runs.commands-3@1234 for --set-aside, but found {found[:80]!r}"
        )
        self.found = found


class NotAWorker(CommandError):
    """What is named as a worker is something else."""

    code = ExitCode.USAGE


class WrongServer(CommandError):
    """There is no Kapelle at the URL, and there never will be; or tokens cannot be used."""

    code = ExitCode.USAGE


class BadReference(CommandError):
    """--app is not of the form MODULE:ATTRIBUTE."""

    code = ExitCode.USAGE


class NotATopology(CommandError):
    """What --app names is not a topology, nor a function that gives one as asked for."""

    code = ExitCode.USAGE


class NoServers(CommandError):
    """Nothing says where Kafka is."""

    code = ExitCode.USAGE


class BadProperty(CommandError):
    """A setting that is not name=value. The message never repeats it: it may be a secret."""

    code = ExitCode.USAGE


class BadClientSetting(CommandError):
    """A setting that librdkafka does not know, or a value that it does not take."""

    code = ExitCode.USAGE


class AppMissing(CommandError):
    """There is no such module, or it has no such attribute."""

    code = ExitCode.NOT_FOUND


class UnknownProcessor(CommandError):
    """There is no such processor."""

    code = ExitCode.NOT_FOUND

    def __init__(self, unknown: list[str], known: list[str]) -> None:
        super().__init__(f"Expected processors among {', '.join(known)}, but found {', '.join(unknown)}")
        self.unknown = unknown


class NoDeadLetters(CommandError):
    """The topic of dead letters is not there."""

    code = ExitCode.NOT_FOUND

    def __init__(self, topic: str) -> None:
        super().__init__(f"Expected the topic {topic}, but it does not exist: is --prefix right?")
        self.topic = topic


class NotThere(CommandError):
    """The server does not have what was named."""

    code = ExitCode.NOT_FOUND


class TopicsWrong(CommandError):
    """Topics are missing or set otherwise."""

    code = ExitCode.PRECONDITION


class RegistryMissing(CommandError):
    """Nothing says where the schema registry is."""

    code = ExitCode.USAGE


class SchemasDiffer(CommandError):
    """The schemas in the registry are not those of the public topics."""

    code = ExitCode.PRECONDITION


class RegistryWrong(CommandError):
    """What should be a schema registry does not answer as one."""

    code = ExitCode.UNAVAILABLE


class NothingToRun(CommandError):
    """A topology without processors."""

    code = ExitCode.PRECONDITION


class AddressTaken(CommandError):
    """The address is not free."""

    code = ExitCode.PRECONDITION


class DataInUse(CommandError):
    """Another process has the directory."""

    code = ExitCode.PRECONDITION

    def __init__(self, directory: object, holder: str) -> None:
        super().__init__(
            f"Expected {directory} to be free, but it is in use by {holder}: stop that process, or use another --data"
        )


class DataDamaged(CommandError):
    """Files of the log cannot be read."""

    code = ExitCode.PRECONDITION

    def __init__(self, directory: object, reason: str) -> None:
        super().__init__(
            f"Expected all files of the log in {directory} to be readable, but some are damaged: "
            f"{' '.join(reason.split()).rstrip('.')}. Restore the directory from a copy, or continue with what can "
            f"be read: `kapelle dev --data {directory} --salvage`, which keeps a copy of the directory"
        )


class InTheWay(CommandError):
    """The server refuses as things are, or the token does not allow it."""

    code = ExitCode.PRECONDITION


class NotInTime(CommandError):
    """No server answered, or nothing came of it in time."""

    code = ExitCode.UNAVAILABLE


class Unreachable(CommandError):
    """No broker answered in time."""

    code = ExitCode.UNAVAILABLE


def with_line(error: BaseException) -> str:
    """An error with the line that raised it: what a traceback is read for, most of the time."""
    return f"{type(error).__name__}: {error}{line_of(error)}"


def line_of(error: BaseException | None) -> str:
    """The line that raised an error, in brackets."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
