"""The cost of a tick in the processor alone with many schedules, with its tables in RocksDB.

Few and many are measured in turn, a part at a time, as in `signals_growth`. A tick finds its timer, starts an instance
and sets the next timer. The instances of a part end before the next part begins. Few are those of ten workflows, many
are on as few workflows as may have them. One tick after the other is of another workflow.
"""

import json
from typing import Any, Final

from benchmarks.engine_work import AUTHOR, NOOP, chain
from benchmarks.figures import progress
from benchmarks.signals_growth import NOW_MS, PARTS, STEP, Costs, Shard, in_turn, shard
from kapelle.processors.effects import Emit
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.workflows import workflows
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus

FEW: Final = 10
EACH_MOST: Final = 200  # time triggers of one workflow
FEWEST_WORKFLOWS: Final = 10
INTERVAL_MS_MIN: Final = 120_000
SPACE_MS: Final = 1_000  # between two ticks, if there are many
FOR_EVER_MS: Final = 1 << 52


def push(workflow_id: str, triggers: list[dict[str, Any]], strategy: object) -> c.PushVersion:
    """A version of one NoOp step with time triggers."""
    properties = {"owner": AUTHOR, "run_strategy": strategy}
    workflow = {"id": workflow_id, "time_triggers": triggers, "steps": chain(1, NOOP)}
    text = json.dumps({"properties": properties, "workflow": workflow})
    return c.PushVersion(f"{workflow_id}-push", AUTHOR, text)


class Ticking:
    """Schedules that tick one after the other, for ever."""

    def __init__(self, made: Shard, schedules: int) -> None:
        self._shard = made
        self._running: list[tuple[str, int]] = []
        interval_ms = max(INTERVAL_MS_MIN, schedules * SPACE_MS)
        each = max(schedules // FEWEST_WORKFLOWS, 1) if schedules < FEWEST_WORKFLOWS * EACH_MOST else EACH_MOST
        for number in range(0, schedules, each):
            key = f"w{number}"
            places = [(number + one) * STEP % schedules for one in range(each)]  # neighbours do not tick in turn
            anchors = [NOW_MS + place * interval_ms // schedules for place in places]
            triggers = [{"type": "INTERVAL", "interval": interval_ms // 1_000, "anchor": anchor} for anchor in anchors]
            made.fold(key, push(key, triggers, {"rule": "PARALLEL", "workflow_concurrency": 1_000}))
        made.warm_up()

    def tick(self, _: int) -> None:
        """The next timer of all is due."""
        ((key, name, due_at_ms),) = self._shard.state.due(FOR_EVER_MS, 1)
        message = Message(key, TimerDue(name, due_at_ms), "0")
        for effect in list(workflows.deciders[TimerDue](message, self._shard.state.reader, due_at_ms)):
            if isinstance(effect, Emit):
                workflows.appliers[type(effect.value)](Message(key, effect.value, ""), self._shard.state.writer)
                if isinstance(effect.value, c.InstanceCreated):
                    self._running.append((key, effect.value.instance_id))
        self._shard.count()

    def end_all(self) -> int:
        """All instances that run end. Returns how many there were."""
        ended, self._running = self._running, []
        for key, number in ended:
            self._shard.fold(key, c.RecordRunEnd(number, 1, InstanceStatus.SUCCEEDED, ""))
        self._shard.commit()
        return len(ended)


def _ticks(schedules: int, part: int) -> Costs:
    """Part by part: what a tick costs among this number of schedules."""
    with shard(workflows) as made:
        ticking = Ticking(made, schedules)
        while True:
            yield made.cost_us(ticking.tick, range(part))
            assert ticking.end_all() == part  # each tick has started one instance


def growth(schedules: int, samples: int) -> dict[str, float]:
    """The cost of a tick among many schedules, over that among few."""
    few, many, ratio = in_turn(_ticks(FEW, samples // PARTS), _ticks(schedules, samples // PARTS))
    progress(f"a tick: {few:.1f} us with {FEW} schedules, {many:.1f} with {schedules:,}")
    return {"growth_schedules": round(ratio, 2), "growth_schedules_max": schedules, "growth_tick_us": round(many, 1)}
