"""The shapes of lineage: signals and instances, and how one led to the other."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType, field

from kapelle.api.answers.common import AtMs, Members
from kapelle.schemas.contracts import InstanceStatus
from kapelle.views.queries.lineage import Direction


class NodeType(StrEnum):
    """What a node of a lineage is."""

    SIGNAL = "SIGNAL"
    INSTANCE = "INSTANCE"


class Node(Struct, kw_only=True):
    """A signal or an instance. Causes have a negative distance. `is_cut`: it has neighbours that are not shown."""

    id: str
    type: NodeType
    distance: int
    is_cut: bool
    name: str | UnsetType = UNSET
    sequence: int | UnsetType = UNSET
    params: Members | UnsetType = UNSET
    workflow_id: str | UnsetType = UNSET
    workflow_instance_id: int | UnsetType = UNSET
    status: InstanceStatus | UnsetType = UNSET
    time: AtMs | UnsetType = UNSET


class EdgeType(StrEnum):
    """How one node led to another."""

    STARTED = "STARTED"
    AWAITED = "AWAITED"
    PUBLISHED = "PUBLISHED"
    LAUNCHED = "LAUNCHED"


class Edge(Struct, kw_only=True):
    """How one node led to another. A repetition has changed nothing."""

    source: str = field(name="from")
    target: str = field(name="to")
    type: EdgeType
    step_id: str | UnsetType = UNSET
    trigger_id: str | UnsetType = UNSET
    is_repetition: bool | UnsetType = UNSET


class Lineage(Struct, kw_only=True):
    """The causes and effects of a signal or an instance."""

    root: str
    direction: Direction
    depth: int
    nodes: list[Node]
    edges: list[Edge]
    is_cut: bool
