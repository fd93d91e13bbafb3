"""The origin and the effects of a signal: the instances that it started, their children, their signals, and so on.

The graph is walked breadth first, each node once, so that cycles end. It is bounded by depth and by the number of its
nodes, and says where it was cut. A step may have 25,000 children, so they are bounded twice: for each instance, and
together they leave half of the nodes to the signals that they announced and to their own children.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

from kapelle.processors.keys import run_key
from kapelle.processors.parents import INLINE
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind
from kapelle.views.queries.records import Record, raw
from kapelle.views.queries.verdicts import start_of
from kapelle.views.rows import Key

DEPTH_MAX: Final = 20
NODES_MAX: Final = 500
CHILDREN_MAX: Final = 50  # of one instance

Node = tuple[str, str, int]  # type, name or workflow id, sequence or instance id
SIGNAL: Final = "SIGNAL"
INSTANCE: Final = "INSTANCE"
LAUNCHED: Final = "LAUNCHED"


class Direction(StrEnum):
    """The direction of a lineage query: causes, effects, or both."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"


class Edge(msgspec.Struct, frozen=True, order=True):
    """What one thing had to do with another. A repetition changed nothing: it had been so before."""

    source: Node
    target: Node
    type: str  # STARTED, AWAITED, PUBLISHED or LAUNCHED
    step_id: str = ""
    trigger_id: str = ""
    is_repetition: bool = False


Neighbours = Callable[[sqlite3.Connection, Node], Iterator[Edge]]


class Families:
    """How many children are shown at one distance: of each instance, and together."""

    def __init__(self, left: int) -> None:
        self._left = max(left, 1)
        self._shown: Counter[Node] = Counter()

    def takes(self, edge: Edge) -> bool:
        """Whether the node that an edge leads to is shown. Only children are counted."""
        if edge.type != LAUNCHED:
            return True
        if self._left <= 0 or self._shown[edge.source] >= CHILDREN_MAX:
            return False
        self._left -= 1
        self._shown[edge.source] += 1
        return True


class Walk:
    """One walk from a node in one direction: the nodes with their distances, the edges, and where it was cut."""

    def __init__(self, connection: sqlite3.Connection, seen: dict[Node, int], nodes_max: int) -> None:
        self.seen = seen
        self.edges: set[Edge] = set()
        self.cut: set[Node] = set()
        self._connection = connection
        self._nodes_max = nodes_max

    def go(self, root: Node, neighbours: Neighbours, depth: int, sign: int) -> None:
        """Walk so deep. Distances get this sign."""
        visited, frontier = {root}, [root]
        for distance in range(1, depth + 2):  # one more than asked for, to know whether there is more
            following: list[Node] = []
            families = Families((self._nodes_max - len(self.seen)) // 2)
            for node in frontier:
                for edge in neighbours(self._connection, node):
                    other = edge.target if sign > 0 else edge.source
                    if other not in visited and other not in self.seen:
                        is_full = distance > depth or len(self.seen) >= self._nodes_max
                        if is_full or (sign > 0 and not families.takes(edge)):
                            self.cut.add(node)
                            continue
                        self.seen[other] = sign * distance
                    self.edges.add(edge)
                    if other not in visited and distance <= depth:
                        visited.add(other)
                        following.append(other)
            frontier = following


def of_signal(connection: sqlite3.Connection, at: tuple[str, int], direction: Direction, depth: int) -> Record:
    """The lineage of a signal."""
    return _lineage(connection, (SIGNAL, *at), direction, depth)


def of_instance(connection: sqlite3.Connection, at: tuple[str, int], direction: Direction, depth: int) -> Record:
    """The lineage of an instance."""
    return _lineage(connection, (INSTANCE, *at), direction, depth)


def _lineage(
    connection: sqlite3.Connection, root: Node, direction: Direction, depth: int, *, nodes_max: int = NODES_MAX
) -> Record:
    walk = Walk(connection, {root: 0}, nodes_max)
    for way, neighbours, sign in ((Direction.FORWARD, after, 1), (Direction.BACKWARD, before, -1)):
        if direction in (way, Direction.BOTH):
            walk.go(root, neighbours, depth, sign)
    nodes = sorted(walk.seen, key=lambda node: (walk.seen[node], node))
    return {
        "root": node_id(root),
        "direction": direction.value,
        "depth": depth,
        "nodes": [
            {**_node(connection, node), "distance": walk.seen[node], "is_cut": node in walk.cut} for node in nodes
        ],
        "edges": [_edge(edge) for edge in sorted(walk.edges)],
        "is_cut": bool(walk.cut),
    }


def node_id(node: Node) -> str:
    """The name of a node: no signal has that of an instance."""
    kind, name, number = node
    return f"signal {name} {number}" if kind == SIGNAL else f"instance {name} {number}"


def _node(connection: sqlite3.Connection, node: Node) -> Record:
    kind, name, number = node
    about: Record = {"id": node_id(node), "type": kind}
    if kind == SIGNAL:
        row = connection.execute("SELECT * FROM signals WHERE name = ? AND sequence = ?", (name, number)).fetchone()
        about |= {"name": name, "sequence": number}
        return about if row is None else {**about, "params": raw(row["params"]), "time": row["at_ms"]}
    row = connection.execute(
        "SELECT status, created_at_ms FROM instances WHERE workflow_id = ? AND instance_id = ?", (name, number)
    ).fetchone()
    about |= {"workflow_id": name, "workflow_instance_id": number}
    return about if row is None else {**about, "status": row["status"], "time": row["created_at_ms"]}


def _edge(edge: Edge) -> Record:
    about: Record = {"from": node_id(edge.source), "to": node_id(edge.target), "type": edge.type}
    more = {"step_id": edge.step_id, "trigger_id": edge.trigger_id, "is_repetition": edge.is_repetition}
    return {**about, **{name: value for name, value in more.items() if value}}


# Edges ----------------------------------------------------------------------------------------------------------------


def after(connection: sqlite3.Connection, node: Node) -> Iterator[Edge]:
    """What came of a node."""
    kind, name, number = node
    if kind == SIGNAL:
        yield from _started(connection, "name = ? AND sequence = ? AND verdict = 'FIRED'", (name, number))
        yield from _awaited(connection, "name = ? AND sequence = ?", (name, number))
    else:
        yield from _published(connection, "workflow_id = ? AND instance_id = ?", (name, number))
        yield from _repeated(
            connection, "unaccepted_signals_by_source", "workflow_id = ? AND instance_id = ?", (name, number)
        )
        yield from _launched(connection, (name, number))


def before(connection: sqlite3.Connection, node: Node) -> Iterator[Edge]:
    """Where a node came from."""
    kind, name, number = node
    if kind == SIGNAL:
        named = "name = ? AND sequence = ? AND workflow_id IS NOT NULL"
        yield from _published(connection, named, (name, number))
        again = "name = ? AND first_sequence = ? AND workflow_id IS NOT NULL"
        yield from _repeated(connection, "unaccepted_signals_by_first", again, (name, number))
        return
    row = connection.execute(
        "SELECT request_id FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = 1", (name, number)
    ).fetchone()
    if row is not None and row["request_id"] is not None:
        fired = "request_id = ? AND workflow_id = ? AND verdict = 'FIRED'"
        yield from _started(connection, fired, (row["request_id"], name))
    yield from _launching(connection, (name, number))
    yield from _awaited(connection, "workflow_id = ? AND instance_id = ?", (name, number))


def _launching(connection: sqlite3.Connection, at: tuple[str, int]) -> Iterator[Edge]:
    """The step that an instance is a child of."""
    row = connection.execute(
        """SELECT parent_workflow, parent_instance, parent_step FROM instances
        WHERE workflow_id = ? AND instance_id = ? AND parent_workflow IS NOT NULL""",
        at,
    ).fetchone()
    if row is not None:
        yield Edge((INSTANCE, row[0], row[1]), (INSTANCE, *at), LAUNCHED, row[2])


def _launched(connection: sqlite3.Connection, at: tuple[str, int]) -> Iterator[Edge]:
    """The children of an instance: of each step, first the iterations and rounds that have announced a signal."""
    steps = connection.execute(
        """SELECT DISTINCT step_id, kind FROM fans WHERE workflow_id = ? AND instance_id = ? AND kind IS NOT NULL""", at
    ).fetchall()
    for row in steps:
        if (kind := ChildKind(row["kind"])) in INLINE:
            yield from _announcing(connection, at, row["step_id"], inline_id(kind, run_key(*at), row["step_id"]))
    children = connection.execute(
        """SELECT parent_step, workflow_id, instance_id FROM instances INDEXED BY instances_by_parent
        WHERE parent_workflow = ? AND parent_instance = ? LIMIT ?""",
        (*at, NODES_MAX + 1),
    )
    for step_id, workflow_id, instance_id in children:
        yield Edge((INSTANCE, *at), (INSTANCE, workflow_id, instance_id), LAUNCHED, step_id)


def _announcing(connection: sqlite3.Connection, at: tuple[str, int], step_id: str, inline: str) -> Iterator[Edge]:
    rows = connection.execute(  # joined, because anybody can announce a signal in the name of a step
        """SELECT DISTINCT s.instance_id FROM signals s INDEXED BY signals_by_source
        JOIN instances i ON i.workflow_id = s.workflow_id AND i.instance_id = s.instance_id
        WHERE s.workflow_id = ? ORDER BY s.instance_id LIMIT ?""",
        (inline, CHILDREN_MAX + 1),
    )
    for (number,) in rows:
        yield Edge((INSTANCE, *at), (INSTANCE, inline, number), LAUNCHED, step_id)


# The conditions below are those written above: values are bound, never written into them.


def _started(connection: sqlite3.Connection, where: str, given: Key) -> Iterator[Edge]:
    for row in connection.execute(f"SELECT * FROM trigger_signals WHERE {where} LIMIT ?", (*given, NODES_MAX + 1)):  # noqa: S608
        start = start_of(connection, row)
        if "workflow_instance_id" in start:
            signal, instance = (row["name"], row["sequence"]), (row["workflow_id"], start["workflow_instance_id"])
            yield Edge(
                (SIGNAL, *signal),
                (INSTANCE, *instance),
                "STARTED",
                trigger_id=row["trigger_id"],
                is_repetition=start["start"] == "DUPLICATED",
            )


def _awaited(connection: sqlite3.Connection, where: str, given: Key) -> Iterator[Edge]:
    for row in connection.execute(f"SELECT * FROM step_signals WHERE {where} LIMIT ?", (*given, NODES_MAX + 1)):  # noqa: S608
        signal, instance = (row["name"], row["sequence"]), (row["workflow_id"], row["instance_id"])
        yield Edge((SIGNAL, *signal), (INSTANCE, *instance), "AWAITED", row["step_id"])


def _published(connection: sqlite3.Connection, where: str, given: Key) -> Iterator[Edge]:
    for row in connection.execute(f"SELECT * FROM signals WHERE {where} LIMIT ?", (*given, NODES_MAX + 1)):  # noqa: S608
        yield from _publication(row, row["sequence"], is_repetition=False)


def _repeated(connection: sqlite3.Connection, index: str, where: str, given: Key) -> Iterator[Edge]:
    """A signal that was there already: somebody else had published it, or the same step before."""
    whole = f"SELECT * FROM unaccepted_signals INDEXED BY {index} WHERE {where} AND status = 'DUPLICATED' LIMIT ?"  # noqa: S608
    for row in connection.execute(whole, (*given, NODES_MAX + 1)):
        yield from _publication(row, row["first_sequence"], is_repetition=True)


def _publication(row: sqlite3.Row, sequence: int, *, is_repetition: bool) -> Iterator[Edge]:
    if row["instance_id"] is not None:
        source, target = (INSTANCE, row["workflow_id"], row["instance_id"]), (SIGNAL, row["name"], sequence)
        yield Edge(source, target, "PUBLISHED", row["step_id"] or "", is_repetition=is_repetition)
