"""The proof of schedules and backfills: 200 ticks in each second on a real broker, while the processors are killed.

    python -m tests.proof.schedules.prove                                   the full proof: two minutes of ticks
    python -m tests.proof.schedules.prove --workflows 20 --window-s 20 --away-s 0 --seed 7

Two processes host the product's processors, by its own command. From the first tick to the last they are killed with
`kill -9`, every two seconds on average, but not before they have made progress. Four workflows of different run
strategies are backfilled meanwhile, eight slots at a time, and their backfills are paused, resumed and started again.
Then everything must come to its end. In the full proof nobody is there for a while after that, and the policies decide
on what was missed. Then a `read_committed` reader sees each tick of the window started once, none passed over, each
tick of other schedules with one fate, each slot with one instance, and never more of a backfill than it may run.
Tables are what history says, and `kapelle verify` agrees.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillStatus
from kapelle.topology.build import DEAD_LETTERS, Topology
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.proof.checks import Seen
from tests.proof.composites.prove import BOTH, KILL_PAUSE_S, VERIFY_S
from tests.proof.composites.watching import Watch
from tests.proof.engine.prove import PARTITIONS, PROCESSORS, SESSION_MS, SESSIONS, Company
from tests.proof.kafka import publish, seen, unfolded
from tests.proof.schedules.crowd import SECOND_MS, Crowd, absent, crowd_violations, filled
from tests.proof.schedules.fates import fate_violations
from tests.proof.schedules.lanes import lane_violations
from tests.proof.schedules.workload import AUTHOR, definition
from tests.proof.tables import table_problems
from tests.proof.workload import Published
from tests.support.broker import Broker, BrokerSettings, open_private_broker

KILL_EVERY_S: Final = 2.0  # on average
PROGRESS_MIN: Final = 100  # records between kills
PROGRESS_S_MAX: Final = 20.0  # in which there may be none, on a busy machine
BEGIN_S: Final = 90.0
LEAD_S: Final = 5.0  # to arm schedules
ARMED_PER_S: Final = 600.0  # at least
DRAIN_S: Final = 600.0
LOOK_S: Final = 0.2
FIRST: Final = "first"
DRAINED: Final = "seconds to drain after the last tick"
COME_BACK_S: Final = 25.0  # after an absence


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    workflows: int = 200
    window_s: int = 120
    slots: int = 120
    away_s: int = 190
    seed: int = 1
    verbose: bool = True


class TickWatch(Watch):
    """A reader that counts ticks and knows which backfills run."""

    def __init__(self, bootstrap_servers: str, of: Topology) -> None:
        super().__init__(bootstrap_servers, of)
        self.armed = 0
        self.started = 0
        self.backfills = set[tuple[str, str]]()
        self.ended = set[tuple[str, str]]()

    def _see(self, key: str, event: object) -> None:
        super()._see(key, event)
        match event:
            case c.SchedulesArmed():
                self.armed += 1
            case c.ScheduleTicked():
                self.started += len(event.ticks)
            case c.CommandSettled():
                self.answered.add(event.request_id)
            case c.BackfillStarted():
                self.backfills.add((key, event.backfill_id))
                self.ended.discard((key, event.backfill_id))
            case c.BackfillChanged(status=BackfillStatus.COMPLETED):
                self.ended.add((key, event.backfill_id))

    def left(self) -> str:
        return f"{super().left()}; {self.started} ticks, {len(self.ended)} of {len(self.backfills)} backfills"


class ScheduleProof:
    """One run. `run` returns the violations; an empty list is the proof."""

    def __init__(self, broker: Broker, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.counts = Counter[str]()
        self.kills = 0
        self._chance = random.Random(plan.seed)
        self._servers = broker.bootstrap_servers
        self._directory = directory
        prefix = f"schedules-{plan.seed}-{random.SystemRandom().randrange(10**9)}"
        self._topology = topology(prefix=prefix, partitions=PARTITIONS)
        self._place = ["--bootstrap-servers", self._servers, "--prefix", prefix, "--partitions", str(PARTITIONS)]
        self.members = Company(directory, [*self._place, "--session-timeout-ms", str(SESSION_MS)])

    def run(self) -> list[str]:
        Topics(self._topology, KafkaSettings(bootstrap_servers=self._servers)).apply()
        watch = TickWatch(self._servers, self._topology)
        try:
            for number in PROCESSORS:
                self._start(number)
            problems = self._begin(watch)
            problems = problems or self._kill_for_a_while(watch) or self._drain(watch)
            problems = problems or self._be_away(watch)
        finally:
            self.members.stop_all()
            watch.close()
        return problems or self._check()

    # What happens -----------------------------------------------------------------------------------------------------

    def _begin(self, watch: TickWatch) -> list[str]:
        """Once members are up, all schedules are armed before the first tick."""
        push = c.PushVersion("push-first", AUTHOR, definition(FIRST, [], rule="SEQUENTIAL"))
        start = c.StartInstances(AUTHOR, (c.Start("start-first"),))
        self._publish([("workflows.commands", FIRST, push), ("workflows.commands", FIRST, start)])
        if problems := self._await(watch, lambda: watch.instances > 0, "an instance", BEGIN_S):
            return problems
        lead_s = LEAD_S + self.plan.workflows * self.plan.window_s / ARMED_PER_S
        begin_ms = int(time.time() + lead_s) * SECOND_MS
        self.crowd = Crowd(self.plan.workflows, begin_ms, self.plan.window_s)
        self.filled = filled(begin_ms, self.plan.slots)
        self._publish([*self.crowd.pushes(), *(one.push() for one in self.filled)])
        wanted = self.plan.workflows + len(self.filled)
        if problems := self._await(watch, lambda: watch.armed >= wanted, "armed schedules", lead_s):
            return problems
        self._say(f"{watch.armed} workflows are armed {begin_ms / SECOND_MS - time.time():.1f} s before the first tick")
        while time.time() * SECOND_MS < begin_ms:
            watch.look(LOOK_S)
        self._publish(message for one in self.filled for message in one.starts())
        return []

    def _kill_for_a_while(self, watch: TickWatch) -> list[str]:
        deeds = [message for one in self.filled for message in one.deeds()]
        deeds_at = [self.crowd.begin_ms + (n + 1) * self.plan.window_s * SECOND_MS // 4 for n in range(3)]
        while time.time() * SECOND_MS < self.crowd.end_ms:
            shortest_s, longest_s = KILL_PAUSE_S
            self._look_on(watch, min(max(self._chance.expovariate(1 / KILL_EVERY_S), shortest_s), longest_s))
            for number in self._chance.sample(PROCESSORS, 2 if self._chance.random() < BOTH else 1):
                self.members.kill(number)
                self.kills += 1
                self._start(number)
            if deeds_at and time.time() * SECOND_MS > deeds_at[0]:
                now, deeds_at = 3 - len(deeds_at), deeds_at[1:]
                self._publish(deeds[now::3])
            if problems := self.members.failed():
                return problems
            self._say(f"{self.kills} kills; {watch.left()}; due: {self._due()}")
        self.counts["ticks started in time under kills"] = watch.started
        self._publish(message for number in range(3 - len(deeds_at), 3) for message in deeds[number::3])
        return []

    def _due(self) -> int:
        passed = (time.time() * SECOND_MS - self.crowd.begin_ms) // SECOND_MS + 1
        return int(min(max(passed, 0), self.plan.window_s)) * self.plan.workflows

    def _look_on(self, watch: TickWatch, pause_s: float) -> None:
        """Wait for the next kill. Kills faster than a failover would stop everything, and disturb nothing."""
        began, records = time.monotonic(), watch.records
        while (passed_s := time.monotonic() - began) < pause_s or watch.records < records + PROGRESS_MIN:
            watch.look(LOOK_S)
            if passed_s > PROGRESS_S_MAX:
                return

    def _drain(self, watch: TickWatch) -> list[str]:
        """Wait until each tick of the window is decided on and everything has ended, and nothing is left to fold."""
        ticks = self.plan.workflows * self.plan.window_s
        began = time.monotonic()
        while True:
            done = [watch.is_quiet, watch.started >= ticks, watch.backfills == watch.ended]
            if (
                all(done)
                and time.time() * SECOND_MS > self.crowd.end_ms
                and not unfolded(self._servers, self._topology)
            ):
                self._say(f"quiet; {watch.left()}")
                self.counts.setdefault(DRAINED, round(time.time() - self.crowd.end_ms / SECOND_MS))
                return []
            watch.look(LOOK_S * 2)
            if problems := self.members.failed():
                return problems
            if time.monotonic() > began + DRAIN_S:
                return [f"expected an end within {DRAIN_S} s, but found {watch.left()}"]

    def _be_away(self, watch: TickWatch) -> list[str]:
        """Nobody is there for some ticks. Then the policies decide."""
        if not self.plan.away_s:
            return []
        armed = watch.armed
        self._publish(absent())
        if problems := self._await(watch, lambda: watch.armed >= armed + 3, "three more workflows", BEGIN_S):
            return problems
        for number in PROCESSORS:
            self.members.kill(number)
        self._say(f"away for {self.plan.away_s} s")
        time.sleep(self.plan.away_s)
        for number in PROCESSORS:
            self._start(number)
        until = time.monotonic() + COME_BACK_S
        while time.monotonic() < until:
            watch.look(LOOK_S)
        keys = [*(one.key for one in self.filled), "away-all", "away-latest", "away-none"]
        paused = [("workflows.commands", key, c.PauseSchedules(f"pause-{key}", AUTHOR)) for key in keys]
        self._publish(paused)
        wanted = {command.request_id for _, _, command in paused}
        if problems := self._await(watch, lambda: wanted <= watch.answered, "paused schedules", BEGIN_S):
            return problems
        return self._drain(watch)

    def _await(self, watch: TickWatch, is_there: Any, what: str, within_s: float) -> list[str]:
        until = time.monotonic() + within_s
        while not is_there():
            watch.look(LOOK_S / 2)
            if time.monotonic() > until:
                return [f"expected {what} within {within_s:.0f} s, but found {watch.left()}", *self.members.failed()]
        return []

    # What came of it --------------------------------------------------------------------------------------------------

    def _check(self) -> list[str]:
        events = [processor.events for processor in self._topology.processors.values()]
        found = seen(self._servers, self._topology, [*events, DEAD_LETTERS])
        histories: dict[str, list[Any]] = {}
        for rows in found[WORKFLOW_EVENTS.name].values():
            for key, event in rows:
                histories.setdefault(key, []).append(event)
        problems, fates = fate_violations(histories, dict.fromkeys(histories, self.crowd.end_ms))
        more, lanes = lane_violations(histories)
        self.counts += fates + lanes
        self.counts["latest start (ms after its time)"] = max(_late_ms(histories, self.crowd))
        problems += crowd_violations(self.crowd, histories) + more + _letters(found)
        problems += table_problems(self._servers, self._topology, self._directory, found)
        return problems + self._verified()

    def _verified(self) -> list[str]:
        """What the product's own command says of the tables."""
        command = [sys.executable, "-m", "kapelle.cli.main", "verify", "workflows", "runs", *self._place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERIFY_S, check=False)
        return [f"kapelle verify: {done.stdout[-1000:]} {done.stderr[-1000:]}"] if done.returncode else []

    def _publish(self, what: Iterable[Published]) -> None:
        publish(self._servers, self._topology, what)

    def _start(self, number: int) -> None:
        """Same-cycle delivery is mixed: it must make no difference."""
        self.members.start(number, self._chance.choice(("--same-cycle", "--same-cycle", "--no-same-cycle")))

    def _say(self, text: str) -> None:
        if self.plan.verbose:
            print(text, file=sys.stderr, flush=True)


def _letters(found: Seen) -> list[str]:
    count = sum(len(rows) for rows in found[DEAD_LETTERS.name].values())
    return [f"expected no dead letters, but found {count}"] if count else []


def _late_ms(histories: dict[str, list[Any]], crowd: Crowd) -> list[int]:
    ticked = (event for key in crowd.keys for event in histories[key] if isinstance(event, c.ScheduleTicked))
    return [event.at_ms - tick.scheduled_at_ms for event in ticked for tick in event.ticks]


def prove_on(broker: Broker, plan: Plan) -> tuple[list[str], ScheduleProof]:
    """Prove on a broker that stays as it is."""
    with tempfile.TemporaryDirectory(prefix="kapelle-schedules-") as directory:
        proof = ScheduleProof(broker, Path(directory), plan)
        return proof.run(), proof


def summary(proof: ScheduleProof, problems: list[str], took_s: float) -> str:
    """What happened, as a table in Markdown."""
    plan = proof.plan
    rows: dict[str, object] = {"seed": plan.seed, "took": f"{took_s:.0f} s"}
    rows |= {"ticks a second": plan.workflows, "seconds": plan.window_s, "kills of a processor": proof.kills}
    rows |= {name: f"{count:,}" for name, count in sorted(proof.counts.items())} | {"violations": len(problems)}
    return "\n".join(["| what | count |", "|---|---:|", *(f"| {what} | {count} |" for what, count in rows.items())])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.schedules.prove", description=__doc__)
    parser.add_argument("--workflows", type=int, default=Plan().workflows)
    parser.add_argument("--window-s", type=int, default=Plan().window_s)
    parser.add_argument("--slots", type=int, default=Plan().slots)
    parser.add_argument("--away-s", type=int, default=Plan().away_s)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args(argv)
    began = time.monotonic()
    plan = Plan(workflows=args.workflows, window_s=args.window_s, slots=args.slots, away_s=args.away_s, seed=args.seed)
    with open_private_broker(BrokerSettings(overrides=SESSIONS)) as broker:
        problems, proof = prove_on(broker, plan)
    print(summary(proof, problems, time.monotonic() - began), flush=True)
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
