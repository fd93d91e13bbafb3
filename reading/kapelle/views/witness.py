"""The log that a view was folded from: its identity, and how far the view has read it.

A view is folded from what is acknowledged, so a log that has less, or another log, has lost something. The view itself
is a cache: one that cannot be read tells nothing.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from kapelle.topology.build import Topology
from kapelle.topology.embedded import Witness
from kapelle.topology.log import Place
from kapelle.views.database import FILE_NAME


def witness_of(directory: Path, topology: Topology) -> Witness | None:
    """What the view in a directory tells; None if there is none, or none that can be read."""
    if not (directory / FILE_NAME).is_file():
        return None
    try:
        with closing(_connected(directory)) as connection:
            about = dict(connection.execute("SELECT name, value FROM about").fetchall())
            offsets = connection.execute("SELECT stream, partition, next FROM offsets").fetchall()
    except sqlite3.Error:
        return None
    if "identity" not in about:
        return None
    ends = {
        Place(topology.topic(topology.streams[stream]), partition): following
        for stream, partition, following in offsets
        if stream in topology.streams and partition < topology.partitions(topology.streams[stream])
    }
    return Witness(who=f"the view in {directory}", identity=about["identity"], ends=ends)


def damage_of(directory: Path) -> str | None:
    """What is wrong with the file of a view, all of which is read; None if nothing is, or if there is no file."""
    if not (directory / FILE_NAME).is_file():
        return None
    try:
        with closing(_connected(directory)) as connection:
            verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return None if verdict == "ok" else verdict


def _connected(directory: Path) -> sqlite3.Connection:
    path = quote(str((directory / FILE_NAME).absolute()))
    return sqlite3.connect(f"file:{path}?mode=rw", uri=True)
