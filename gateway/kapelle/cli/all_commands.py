"""The kapelle command with all of its commands, for what writes or tests them all."""

from kapelle.cli.root import command_line

cli = command_line()
