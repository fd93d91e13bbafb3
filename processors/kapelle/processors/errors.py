"""What can be wrong with a processor, by who must act.

ProcessorError
├── caller: the author of a processor
│   ├── BadDeclaration     a table, stream or handler that cannot work; raised when the processor is built
│   ├── WriteInDecide      `decide` tried to change a table; raised when it happens
│   └── WrongTransition    `decide` tried to change a status in a way that its table does not allow
└── caller: the author of a record
    └── KeyUnreadable      a key that is not of the form of its stream (in `keys`)
"""


class ProcessorError(Exception):
    """Anything wrong with a processor."""


class BadDeclaration(ProcessorError):
    """A declaration that cannot work. The message says what was expected, and where."""


class WriteInDecide(ProcessorError):
    """A decision tried to write. Emit an event and write in its `apply` instead."""

    def __init__(self, table: str, operation: str) -> None:
        super().__init__(
            f"Expected decide to leave table {table!r} alone, but it called {operation}(): "
            "emit an event and do this in its apply"
        )
        self.table = table
        self.operation = operation


class WrongTransition(ProcessorError):
    """A decision tried to change a status in a way that does not exist. It is a bug, and nothing of it is written."""

    def __init__(self, subject: str, before: str, after: str) -> None:
        super().__init__(f"Expected a status that follows {before} for {subject}, but found {after}")
        self.subject = subject
        self.before = before
        self.after = after
