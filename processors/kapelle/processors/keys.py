"""The forms of keys. A key is input like any other: the writer of a record chooses it.

| form | such as | of |
|---|---|---|
| `ANY` | anything, or nothing | signals from outside, public records |
| `WORKFLOW` | `etl` | workflows |
| `INSTANCE` | `etl/12` | runs |
| `TASK` | `etl/12/load` | tasks, cancellations |
| `TRIGGER` | `etl/orders` | triggers |
| `SIGNAL` | `orders.ready` | signals |
| `LIMIT` | `tag/gpu`, `workflow/etl`, `tree/etl/12` | permits |

A key has one spelling: `etl/012`, `etl/+12` and `etl/١٢` are not the key of an instance, because they would be on other
partitions than `etl/12`, and two shards would write to one instance.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from kapelle.processors.errors import ProcessorError

INSTANCE_MAX: Final = 2**63 - 1
SHOWN_CHARS_MAX: Final = 80
# What can be limited.
TAG: Final = "tag/"
OF_WORKFLOW: Final = "workflow/"
TREE: Final = "tree/"

_INSTANCE: Final = r"[^/]+/(?P<number>[1-9][0-9]{0,18})"


class KeyForm(StrEnum):
    """What the keys of a stream look like. The value says so to people."""

    ANY = "any key"
    WORKFLOW = "a workflow id"
    INSTANCE = "a workflow id, a slash, and the number of an instance"
    TASK = "a workflow id, the number of an instance and a step id, with slashes between them"
    TRIGGER = "a workflow id, a slash, and a trigger id"
    SIGNAL = "the name of a signal"
    LIMIT = "tag/ and a tag, workflow/ and a workflow id, or tree/ and the key of an instance"


class KeyUnreadable(ProcessorError):
    """A key that is not of the form of its stream."""

    def __init__(self, form: KeyForm, key: str) -> None:
        super().__init__(f"Expected {form.value} as the key, but found {key[:SHOWN_CHARS_MAX]!r}")
        self.form = form
        self.key = key


def _whole(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.DOTALL).fullmatch


_task: Final = re.compile(_INSTANCE + "/.+", re.DOTALL).fullmatch


def _is_task(key: str) -> bool:
    match = _task(key)
    return match is not None and int(match["number"]) <= INSTANCE_MAX


# For each form, what is true of its keys alone.
READS: Final[Mapping[KeyForm, Callable[[str], object]]] = {
    KeyForm.ANY: lambda _: True,
    KeyForm.WORKFLOW: _whole("[^/]+"),
    KeyForm.INSTANCE: lambda key: ids_in(key) is not None,
    KeyForm.TASK: _is_task,
    KeyForm.TRIGGER: _whole("[^/]+/.+"),
    KeyForm.SIGNAL: bool,
    KeyForm.LIMIT: _whole(f"tag/.+|workflow/[^/]+|tree/{_INSTANCE}"),
}

# The same, sooner for those that are looked at most: what these do not match must be asked above.
READS_MOST: Final = {
    **READS,
    KeyForm.INSTANCE: _whole("[^/]+/[1-9][0-9]{0,17}"),
    KeyForm.TASK: _whole("[^/]+/[1-9][0-9]{0,17}/.+"),
}


def trigger_key(workflow_id: str, trigger_id: str) -> str:
    """The key of a trigger."""
    return f"{workflow_id}/{trigger_id}"


def run_key(workflow_id: str, instance_id: int) -> str:
    """The key of an instance. A workflow id holds no slash, so it can be taken apart again."""
    return f"{workflow_id}/{instance_id}"


def task_key(instance: str, step_id: str) -> str:
    """The key of the tasks of a step, by the key of its instance."""
    return f"{instance}/{step_id}"


def tag_key(tag: str) -> str:
    """The key of the limit of a tag."""
    return f"{TAG}{tag}"


def workflow_limit_key(workflow_id: str) -> str:
    """The key of the limit of all steps of a workflow."""
    return f"{OF_WORKFLOW}{workflow_id}"


def tree_key(root: str) -> str:
    """The key of the limit of an instance with all its children, by the key of the instance."""
    return f"{TREE}{root}"


def ids_of(key: str) -> tuple[str, int]:
    """The workflow id and the instance id of a key. Raises `KeyUnreadable`."""
    ids = ids_in(key)
    if ids is None:
        raise KeyUnreadable(KeyForm.INSTANCE, key)
    return ids


def ids_in(key: str) -> tuple[str, int] | None:
    """The workflow id and the instance id of a key; None if it is not the key of an instance."""
    workflow_id, _, digits = key.rpartition("/")
    try:
        number = int(digits)
    except ValueError:
        return None
    # A number has one spelling, which is the one that Python writes.
    is_one = workflow_id and "/" not in workflow_id and 0 < number <= INSTANCE_MAX and str(number) == digits
    return (workflow_id, number) if is_one else None
