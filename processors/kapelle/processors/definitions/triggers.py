"""The rules of signal triggers, and of the signals that steps wait for and announce."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kapelle.processors.definitions.limits import IN_VALUES_MAX, NAME_CHARS_MAX, TRIGGER_SIGNALS_MAX
from kapelle.processors.definitions.mentions import expressions_in, names_in
from kapelle.processors.definitions.models import MatchParam, SignalMatch, SignalTrigger, Step, Workflow
from kapelle.processors.definitions.numbers import TIMEOUT
from kapelle.processors.definitions.problems import Report, at, shown
from kapelle.processors.definitions.texts import Texts
from kapelle.processors.params import BadNumber, Definition, ParamType, duration_ms
from kapelle.processors.signals.matching import PREFIX_CHARS_MAX, Operator

OF_SIGNALS: Final = (ParamType.STRING, ParamType.LONG)
LISTS: Final = (ParamType.STRING_ARRAY, ParamType.LONG_ARRAY)
# What a parameter of a signal may be compared with, where it is not one value of any type.
COMPARED_WITH: Final = {Operator.IN: LISTS, Operator.PREFIX: (ParamType.STRING,)}
EQUALS: Final = (Operator.EQUAL, Operator.IN)
SEPARATOR: Final = "__"
NO_PARAMS: Final[Mapping[str, object]] = {}
PARAMS: Final = "params"
FROM_SIGNAL: Final = re.compile(r"""\bgetFromSignal\s*\(\s*(['"])(.*?)\1\s*,""")


def check_signal_triggers(workflow: Workflow, path: str, *, texts: Texts, report: Report) -> None:
    """Report what is wrong with the signal triggers of a workflow."""
    for index, signal in enumerate(workflow.signal_triggers):
        _check_signal_trigger(signal, at(at(path, "signal_triggers"), index), texts=texts, report=report)


def _check_signal_trigger(trigger: SignalTrigger, path: str, *, texts: Texts, report: Report) -> None:
    where, count = at(path, "definitions"), len(trigger.definitions)
    if not 1 <= count <= TRIGGER_SIGNALS_MAX:
        report.note(where, str(count), f"from 1 to {TRIGGER_SIGNALS_MAX} signals")
    lengths = {len(match.join_keys) for match in trigger.definitions.values()}
    if len(lengths) > 1:
        report.note(
            where, f"{' and '.join(map(str, sorted(lengths)))} of them", "the same number of join_keys for each signal"
        )
    for name, match in trigger.definitions.items():
        _check_signal(name, match, at(where, name), report=report)
    if trigger.expiry is not None:
        _check_expiry(trigger.expiry, at(path, "expiry"), report)
    texts.params(trigger.params, at(path, "params"))
    if trigger.condition is not None:
        texts.condition(trigger.condition, at(path, "condition"))
    if trigger.dedup_expr is not None:
        texts.expression(trigger.dedup_expr, at(path, "dedup_expr"))
    if not any(problem.path.startswith(path) for problem in report.problems):  # else this could be its consequence
        for place, definition in _evaluated(trigger):
            _check_mentions(trigger, definition, at(path, place), texts=texts)


def _check_signal(name: str, match: SignalMatch, path: str, *, report: Report) -> None:
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        report.add(path, name, f"the name of a signal, of 1 to {NAME_CHARS_MAX} characters")
    for key in match.join_keys:
        if key in match.match_params:
            report.add(at(path, "join_keys"), key, "join keys that are not match_params too")
    if len(set(match.join_keys)) < len(match.join_keys):
        report.add(at(path, "join_keys"), list(match.join_keys), "each join key once")
    for key, param in match.match_params.items():
        _check_match(param, at(at(at(path, "match_params"), key), "value"), report)


def _check_match(match: MatchParam, path: str, report: Report) -> None:
    value, is_list = match.value, isinstance(match.value, tuple)
    if match.operator is Operator.IN and not (isinstance(value, tuple) and 1 <= len(value) <= IN_VALUES_MAX):
        report.add(path, value, f"a list of 1 to {IN_VALUES_MAX} values, because the operator is 'in'")
    elif match.operator is not Operator.IN and is_list:
        report.add(path, value, f"one value, because the operator is '{match.operator}'")
    elif match.operator is Operator.PREFIX and not (isinstance(value, str) and len(value) <= PREFIX_CHARS_MAX):
        report.add(path, value, f"text of at most {PREFIX_CHARS_MAX} characters, because the operator is 'prefix'")


def _check_expiry(written: int | str, path: str, report: Report) -> None:
    """A trigger waits before there is an instance, so no parameter can say for how long."""
    try:
        duration_ms(written, NO_PARAMS.__getitem__)
    except BadNumber:
        report.add(path, written, TIMEOUT.expected)


def _evaluated(trigger: SignalTrigger) -> Iterator[tuple[str, Definition]]:
    """All that is evaluated when the signals are there, with its place."""
    for name, definition in trigger.params.items():
        yield f"params.{name}", definition
    for place, text in (("condition", trigger.condition), ("dedup_expr", trigger.dedup_expr)):
        if text is not None:
            yield place, Definition(type=ParamType.STRING, expression=text)


def _check_mentions(trigger: SignalTrigger, definition: Definition, path: str, *, texts: Texts) -> None:
    """Only the trigger's own parameters and those of its signals are there when it fires."""
    written = shown(definition.expression if definition.expression is not None else definition.value)
    for name in names_in(definition, texts.sel):
        if name != PARAMS and name not in trigger.params and name.partition(SEPARATOR)[0] not in trigger.definitions:
            expected = "parameters of the trigger, or of its signals as 'signal__param'"
            texts.report.note(path, f"{written}, which refers to {name!r}", expected)
    for text in expressions_in(definition):
        for _, name in FROM_SIGNAL.findall(text):
            if name not in trigger.definitions:
                expected = f"one of its signals ({', '.join(trigger.definitions)})"
                texts.report.note(path, f"{written}, which refers to {name!r}", expected)


def check_step_signals(step: Step, path: str, *, report: Report) -> None:
    """Report what is wrong with the signals that a step waits for and announces."""
    for index, dependency in enumerate(step.signal_dependencies):
        here = at(at(at(path, "signal_dependencies"), index), "match_params")
        ranges = [name for name, match in dependency.match_params.items() if match.operator not in EQUALS]
        if len(ranges) > 1:
            report.add(here, ranges, "at most one parameter with an operator other than '=' and 'in'")
        for name, match in dependency.match_params.items():
            types = COMPARED_WITH.get(match.operator, OF_SIGNALS)
            _check_types({name: match.param}, here, report, types=types)
    for index, output in enumerate(step.signal_outputs):
        _check_types(output.params, at(at(at(path, "signal_outputs"), index), "params"), report)


def _check_types(
    params: Mapping[str, Definition], path: str, report: Report, *, types: tuple[ParamType, ...] = OF_SIGNALS
) -> None:
    for name, definition in params.items():
        if definition.type not in types:
            report.add(at(path, name), definition.type, f"a parameter of type {' or '.join(types)}")
