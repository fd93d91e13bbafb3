"""Properties: what can be changed without a new version. Their snapshot, the changes to it, and how they are merged.

| a change by | run_strategy, step_concurrency, alerting, if absent | everything else, if absent |
|---|---|---|
| push of a version | back to the default | stays |
| update | stays, unless its reset flag is set | stays |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from kapelle.processors.definitions.form_validation import fill
from kapelle.processors.definitions.forms import PropertiesForm, Raw, StrategyForm, TagForm, UpdateForm
from kapelle.processors.definitions.json_text import read_json, write_json
from kapelle.processors.definitions.limits import PARALLEL_DEFAULT
from kapelle.processors.definitions.models import Rule, Tag
from kapelle.processors.definitions.problems import DefinitionRefused, Problem, Report, at
from kapelle.processors.definitions.reading import Reader

T = TypeVar("T")

SNAPSHOTS_KEPT: Final = 1024


class RunStrategy(msgspec.Struct, frozen=True):
    """The rule, and how many instances it lets run at a time."""

    rule: Rule = Rule.SEQUENTIAL
    workflow_concurrency: int = 1

    @classmethod
    def by(cls, rule: Rule) -> RunStrategy:
        """The rule with its own number of instances."""
        return cls(rule, PARALLEL_DEFAULT if rule is Rule.PARALLEL else 1)


class StrategyChange(msgspec.Struct, frozen=True):
    """Those parts of a run strategy that are given."""

    rule: Rule | None = None
    workflow_concurrency: int | None = None


class PropertiesChange(msgspec.Struct, frozen=True):
    """What a push or an update says. None is what it does not speak of."""

    owner: str | None = None
    owner_extra: Mapping[str, Any] = {}
    access_control: Mapping[str, Any] | None = None
    run_strategy: StrategyChange | None = None
    step_concurrency: int | None = None
    alerting: Mapping[str, Any] | None = None
    alerting_disabled: bool | None = None
    signal_trigger_disabled: bool | None = None
    time_trigger_disabled: bool | None = None
    description: str | None = None
    tags: tuple[Tag, ...] | None = None
    reset_run_strategy_rule: bool = False
    reset_workflow_concurrency: bool = False
    reset_step_concurrency: bool = False

    @classmethod
    def parse(cls, written: str | bytes) -> PropertiesChange:
        """The change that an update asks for."""
        report = Report()
        change = cls.read(read_json(written), "", report=report, is_push=False)
        report.refuse_if_any()
        return change

    @classmethod
    def read(cls, raw: object, path: str, *, report: Report, is_push: bool) -> PropertiesChange:
        """The change that an object describes; what is wrong with it is reported."""
        form = fill(PropertiesForm if is_push else UpdateForm, raw, path, report=report, fallback={})
        owner = dict(form.owner) if form.owner else {}
        change = cls(
            owner=owner.pop("name", None),
            owner_extra=owner,
            access_control=_given(form, "access_control"),
            run_strategy=_strategy(form.run_strategy, at(path, "run_strategy"), report),
            step_concurrency=form.step_concurrency,
            alerting=_given(form, "alerting"),
            alerting_disabled=form.alerting_disabled,
            signal_trigger_disabled=form.signal_trigger_disabled,
            time_trigger_disabled=form.time_trigger_disabled,
            description=form.description,
            tags=Reader(report).tags(form.tags, at(path, "tags")) if "tags" in form.model_fields_set else None,
        )
        if not isinstance(form, UpdateForm):
            _check_strategy(change, report)
            return change
        change = msgspec.structs.replace(
            change,
            reset_run_strategy_rule=form.reset_run_strategy_rule,
            reset_workflow_concurrency=form.reset_workflow_concurrency,
            reset_step_concurrency=form.reset_step_concurrency,
        )
        _check_update(change, path, report)
        return change


def _given(form: PropertiesForm, name: str) -> Raw | None:
    return getattr(form, name) if name in form.model_fields_set else None


def _strategy(raw: object, path: str, report: Report) -> StrategyChange | None:
    """The three ways to write a strategy: its rule, the number of a parallel one, or both as an object."""
    if raw is None:
        return None
    if isinstance(raw, dict):
        form = fill(StrategyForm, raw, path, report=report, fallback={})
        return StrategyChange(form.rule, form.workflow_concurrency)
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = {"rule": Rule.PARALLEL, "workflow_concurrency": raw}
        form = fill(StrategyForm, raw, path, report=report, fallback={})
        return StrategyChange(form.rule, form.workflow_concurrency)
    rule = raw.upper() if isinstance(raw, str) else ""
    if rule not in Rule.__members__:
        report.add(path, raw, f"one of {', '.join(Rule)}, a number, or an object with a rule")
        return None
    return StrategyChange(Rule(rule))


def _check_strategy(change: PropertiesChange, report: Report) -> None:
    """A push begins with the default strategy, so it can be told at once whether what it says fits together."""
    try:
        _merged_strategy(RunStrategy(), change)
    except DefinitionRefused as refused:
        for problem in refused.problems:
            report.note(problem.path, problem.value, problem.expected)


def _check_update(change: PropertiesChange, path: str, report: Report) -> None:
    if change == PropertiesChange():
        report.note(path or "the request", "nothing to change", "a property or a reset flag")
    if change.tags is not None:
        report.note(at(path, "tags"), "tags", "no tags, which have requests of their own")
    strategy = change.run_strategy or StrategyChange()
    for flag, given in (
        ("reset_run_strategy_rule", strategy.rule),
        ("reset_workflow_concurrency", strategy.workflow_concurrency),
        ("reset_step_concurrency", change.step_concurrency),
    ):
        if getattr(change, flag) and given is not None:
            report.note(at(path, flag), f"a reset and the new value {given}", "one of both")


class Properties(msgspec.Struct, frozen=True):
    """A snapshot. What was never set, or was set back, is None or the default."""

    owner: str
    owner_extra: Mapping[str, Any] = {}
    access_control: Mapping[str, Any] | None = None
    run_strategy: RunStrategy = RunStrategy()
    step_concurrency: int | None = None
    alerting: Mapping[str, Any] | None = None
    alerting_disabled: bool = False
    signal_trigger_disabled: bool = False
    time_trigger_disabled: bool = False
    description: str | None = None
    tags: tuple[Tag, ...] = ()

    @classmethod
    def parse(cls, written: str) -> Properties:
        """The snapshot that `json` wrote."""
        return _parsed(written)

    def json(self) -> str:
        """The snapshot as JSON, without what is not set."""
        raw = {name: getattr(self, name) for name in self.__struct_fields__ if name != "owner_extra"}
        raw["owner"] = {"name": self.owner, **self.owner_extra} if self.owner_extra else self.owner
        raw["tags"] = [tag.as_json() for tag in self.tags] or None
        return write_json({name: value for name, value in raw.items() if value not in (None, False)})

    def with_tag(self, tag: Tag) -> Properties:
        """The tag added, or put in the place of the one of its name."""
        return msgspec.structs.replace(self, tags=_united(self.tags, (tag,)))

    def without_tag(self, name: str) -> Properties:
        """The tag of that name taken away."""
        return msgspec.structs.replace(self, tags=tuple(tag for tag in self.tags if tag.name != name))


@lru_cache(SNAPSHOTS_KEPT)
def _parsed(written: str) -> Properties:
    report = Report()
    change = PropertiesChange.read(read_json(written), "properties", report=report, is_push=True)
    report.refuse_if_any()
    return merged_properties(None, change, is_push=True)


def parse_tag(written: str | bytes) -> Tag:
    """The tag that a request asks for: a name, or an object."""
    raw, report = read_json(written), Report()
    raw = {"name": raw} if isinstance(raw, str) else raw
    tag = Reader(report).tag(fill(TagForm, raw, "tag", report=report, fallback={"name": "unknown"}), "tag")
    report.refuse_if_any()
    return tag


def merged_properties(current: Properties | None, change: PropertiesChange, *, is_push: bool) -> Properties:
    """The next snapshot. Refused without an owner, and if the run strategy makes no sense."""
    owner = change.owner or (current.owner if current else None)
    if owner is None:
        raise DefinitionRefused([Problem("properties.owner", "nothing", "the owner of a new workflow")])
    base = current or Properties(owner)
    step_concurrency = None if is_push or change.reset_step_concurrency else base.step_concurrency
    return Properties(
        owner=owner,
        owner_extra=change.owner_extra if change.owner else base.owner_extra,
        access_control=_either(change.access_control, base.access_control),
        run_strategy=_merged_strategy(RunStrategy() if is_push else base.run_strategy, change),
        step_concurrency=_either(change.step_concurrency, step_concurrency),
        alerting=_either(change.alerting, None if is_push else base.alerting),
        alerting_disabled=_either(change.alerting_disabled, base.alerting_disabled),
        signal_trigger_disabled=_either(change.signal_trigger_disabled, base.signal_trigger_disabled),
        time_trigger_disabled=_either(change.time_trigger_disabled, base.time_trigger_disabled),
        description=_either(change.description, base.description),
        tags=_united(base.tags, change.tags or ()),
    )


def _either(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given


def _united(base: tuple[Tag, ...], given: tuple[Tag, ...]) -> tuple[Tag, ...]:
    return tuple({tag.name: tag for tag in (*base, *given)}.values())


def _merged_strategy(base: RunStrategy, change: PropertiesChange) -> RunStrategy:
    given = change.run_strategy or StrategyChange()
    rule = Rule.SEQUENTIAL if change.reset_run_strategy_rule else given.rule or base.rule
    if change.reset_workflow_concurrency and rule is not Rule.PARALLEL:
        raise DefinitionRefused([Problem("reset_workflow_concurrency", "true", f"no reset while the rule is {rule}")])
    kept = base if rule is base.rule and not change.reset_workflow_concurrency else RunStrategy.by(rule)
    made = RunStrategy(rule, given.workflow_concurrency or kept.workflow_concurrency)
    if rule is not Rule.PARALLEL and made.workflow_concurrency > 1:
        concurrency = str(made.workflow_concurrency)
        path = "properties.run_strategy.workflow_concurrency"
        raise DefinitionRefused([Problem(path, concurrency, f"1, because the rule is {rule}")])
    return made
