"""Where the kapelle command begins."""

import sys
from collections.abc import Sequence

from kapelle.cli.root import COMMANDS, command_line


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, with the command that it names and no other: to load them all takes as long again."""
    words = sys.argv[1:] if arguments is None else arguments
    named = [word for word in words if not word.startswith("-")][:1]
    known = named if named and named[0] in COMMANDS else COMMANDS
    command_line(() if [*words] == ["--version"] else known)(words, prog_name="kapelle")


if __name__ == "__main__":
    main()
