"""Settings of workflows and steps: run strategies, retries and signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from kapelle.client.parameters import BadWorkflow, Params, params_json

Rule = Literal["SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "SERIAL_LATEST_ONLY"]
FailureMode = Literal["FAIL_AFTER_RUNNING", "FAIL_IMMEDIATELY", "IGNORE_FAILURE"]
Criticality = Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"]
CatchUp = Literal["ALL", "LATEST", "NONE"]
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "prefix"]
# A count or a duration: a number, or text with units and parameters of the workflow, such as "${hours}h 30min".
Written = int | str
KINDS: Final = ("error", "platform", "timeout")


class RunStrategy(msgspec.Struct, frozen=True):
    """The rule for instances of a workflow that run at the same time."""

    rule: Rule
    workflow_concurrency: int | None = None

    def __call__(self, workflow_concurrency: int) -> RunStrategy:
        """The strategy with a maximum number of instances: `PARALLEL(3)`."""
        if self.rule != "PARALLEL":
            raise BadWorkflow(f"Expected a number of instances for PARALLEL only, but found it for {self.rule}")
        return RunStrategy(self.rule, workflow_concurrency)

    def as_json(self) -> str | dict[str, object]:
        """The rule alone if nothing else is said."""
        if self.workflow_concurrency is None:
            return self.rule
        return {"rule": self.rule, "workflow_concurrency": self.workflow_concurrency}


SEQUENTIAL: Final = RunStrategy("SEQUENTIAL")
STRICT_SEQUENTIAL: Final = RunStrategy("STRICT_SEQUENTIAL")
FIRST_ONLY: Final = RunStrategy("FIRST_ONLY")
LAST_ONLY: Final = RunStrategy("LAST_ONLY")
PARALLEL: Final = RunStrategy("PARALLEL")
SERIAL_LATEST_ONLY: Final = RunStrategy("SERIAL_LATEST_ONLY")


class Delay(msgspec.Struct, frozen=True):
    """The delay before a retry: fixed, or growing by an exponent up to a limit."""

    seconds: Written
    exponent: Written | None = None
    limit: Written | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the delay is fixed."""
        return self.exponent is None and self.limit is None


class Retry(msgspec.Struct, frozen=True):
    """The retry policy of a step: retries after errors, platform failures and time-outs, and their delays."""

    errors: Written | None = None
    platform: Written | None = None
    timeouts: Written | None = None
    error_delay: Delay | None = None
    platform_delay: Delay | None = None
    timeout_delay: Delay | None = None

    def as_json(self) -> dict[str, object]:
        """The retry policy of a step."""
        limits = zip(KINDS, (self.errors, self.platform, self.timeouts), strict=True)
        made: dict[str, object] = {f"{kind}_retry_limit": limit for kind, limit in limits if limit is not None}
        delays = zip(KINDS, (self.error_delay, self.platform_delay, self.timeout_delay), strict=True)
        given = {kind: delay for kind, delay in delays if delay is not None}
        if given:
            made["backoff"] = _backoff(given)
        return made


def _backoff(delays: Mapping[str, Delay]) -> dict[str, object]:
    is_fixed = all(delay.is_fixed for delay in delays.values())
    made: dict[str, object] = {"type": "FIXED_BACKOFF" if is_fixed else "EXPONENTIAL_BACKOFF"}
    for kind, delay in delays.items():
        made[f"{kind}_retry_backoff_in_secs"] = delay.seconds
        if delay.exponent is not None:
            made[f"{kind}_retry_exponent"] = delay.exponent
        if delay.limit is not None:
            made[f"{kind}_retry_limit_in_secs"] = delay.limit
    return made


class Match(msgspec.Struct, frozen=True):
    """A comparison with a parameter of a signal: `Match(">=", 10)`, `Match("in", ["us", "eu"])`."""

    operator: Operator
    value: str | int | Sequence[str] | Sequence[int]


Matches = Mapping[str, str | int | Match]


class On(msgspec.Struct, frozen=True):
    """One signal of a trigger: its name, its conditions, and its join keys."""

    signal: str
    match: Matches = {}
    join: tuple[str, ...] = ()
    latest: bool = False  # of those that wait only the newest counts

    def as_json(self) -> dict[str, object]:
        """The definition of the signal in a trigger."""
        made: dict[str, object] = {}
        if self.match:
            made["match_params"] = {name: _match_json(match) for name, match in self.match.items()}
        if self.join:
            made["join_keys"] = list(self.join)
        if self.latest:
            made["match"] = "latest"
        return made


def _match_json(match: str | int | Match) -> dict[str, object]:
    condition = match if isinstance(match, Match) else Match("=", match)
    return {"value": condition.value, "operator": condition.operator}


class WaitFor(msgspec.Struct, frozen=True):
    """A signal that a step waits for."""

    signal: str
    match: Matches = {}
    latest: bool = False  # the newest that is there, rather than any

    def as_json(self) -> dict[str, object]:
        """The dependency as JSON."""
        made: dict[str, object] = {"name": self.signal}
        if self.match:
            made["match_params"] = {name: self._param(name, match) for name, match in self.match.items()}
        if self.latest:
            made["match"] = "latest"
        return made

    def _param(self, name: str, match: str | int | Match) -> dict[str, object]:
        condition = match if isinstance(match, Match) else Match("=", match)
        return {"param": params_json({name: condition.value})[name], "operator": condition.operator}


class Announce(msgspec.Struct, frozen=True):
    """A signal that a step announces when it has succeeded."""

    signal: str
    params: Params = {}

    def as_json(self) -> dict[str, object]:
        """The output as JSON."""
        return {"name": self.signal, **({"params": params_json(self.params)} if self.params else {})}
