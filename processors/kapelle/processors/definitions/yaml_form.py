"""The YAML form of a push, and the JSON that it stands for.

    Workflow:
      id: etl
      owner: ann
      rows<long>(constant): 1000
      jobs:
        - job: {id: load, type: NoOp, "!day": RUN_DATE}
        - job: {id: report, type: NoOp}
      dag: {load: [IF rows > 0 THEN report]}

Keys that mean nothing to a workflow or a job are its parameters (`yaml_params`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from kapelle.processors.definitions.composites import LOOP_PARAMS, SUBWORKFLOW_ID, SUBWORKFLOW_VERSION
from kapelle.processors.definitions.json_text import write_json
from kapelle.processors.definitions.problems import Report, at, shown
from kapelle.processors.definitions.yaml_params import Raw, params_of
from kapelle.processors.definitions.yaml_text import read_yaml

ROOT: Final = "Workflow"
OF_PROPERTIES: Final = ("owner", "run_strategy", "workflow_concurrency", "step_concurrency")
OF_WORKFLOW: Final = (
    *("id", "name", "description", "tags", "timeout", "criticality", "instance_step_concurrency"),
    *("time_triggers", "signal_triggers"),
)
COMMON: Final = (
    *("id", "name", "description", "failure_mode", "tags", "timeout"),
    *("signal_dependencies", "signal_outputs"),
)
BLOCK: Final = ("params", "loop_params", "jobs", "dag")
# The keys of each kind of job that are no parameters, besides the common ones and `transition`.
OF_KIND: Final = {
    "job": ("type", "sub_type", "type_version", "retry_policy", "idempotent"),
    "subworkflow": ("workflow_id", "subworkflow_id", "version", "sync", "explicit_params"),
    "foreach": ("concurrency", "job_concurrency", "strict_ordering", "ranges", *BLOCK),
    "while": ("condition", *BLOCK),
}
_IF = re.compile(r"\s*IF\s+(.+?)\s+THEN\s+(\S+)\s*", re.IGNORECASE | re.DOTALL)
_OTHERWISE = re.compile(r"\s*OTHERWISE\s+(\S+)\s*", re.IGNORECASE)


def yaml_push(text: str | bytes) -> str:
    """The push as JSON. Refused if it is no YAML of this form; what the JSON means is checked by `parse_push`."""
    raw, report = read_yaml(text), Report()
    root = next(iter(raw), "") if isinstance(raw, dict) else ""
    if not isinstance(raw, dict) or len(raw) != 1 or root.lower() != ROOT.lower() or not isinstance(raw[root], dict):
        report.add("the request", raw, f"one key {ROOT!r} with an object")
        report.refuse_if_any()
    push = _Form(report).push(raw[root], root)
    report.refuse_if_any()
    return write_json(push)


class _Form:
    """Turns objects of the YAML form into objects of the JSON form."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def push(self, raw: Raw, path: str) -> Raw:
        known = {*OF_PROPERTIES, *OF_WORKFLOW, "jobs", "dag"}
        strategy = {
            "rule": raw.get("run_strategy", "SEQUENTIAL"),
            "workflow_concurrency": raw.get("workflow_concurrency"),
        }
        properties = {
            "owner": raw.get("owner"),
            "run_strategy": strategy,
            "step_concurrency": raw.get("step_concurrency"),
            "description": raw.get("description"),
            "tags": raw.get("tags"),
        }
        workflow = {
            **_taken(raw, OF_WORKFLOW),
            "params": params_of(_others(raw, known), path, self.report),
            "steps": self.steps(raw, path),
        }
        return {"properties": _without_nulls(properties), "workflow": workflow}

    def steps(self, raw: Raw, path: str) -> list[Raw]:
        """The jobs of a workflow or a loop, joined as `dag` says where they do not say it themselves."""
        jobs = raw.get("jobs", [])
        if not isinstance(jobs, list):
            self.report.add(at(path, "jobs"), jobs, "a list of jobs")
            return []
        found_jobs: list[tuple[str, Raw, str]] = []
        for index, wrapped in enumerate(jobs):
            here = at(at(path, "jobs"), index)
            kind = next(iter(wrapped), "") if isinstance(wrapped, dict) else ""
            if not isinstance(wrapped, dict) or len(wrapped) != 1 or kind not in OF_KIND or wrapped[kind] is None:
                self.report.add(here, wrapped, f"an object with one key of {', '.join(OF_KIND)}")
            elif not isinstance(wrapped[kind], dict):
                self.report.add(at(here, kind), wrapped[kind], "an object")
            else:
                found_jobs.append((kind, wrapped[kind], at(here, kind)))
        joined = self._joined(raw.get("dag"), [job for _, job, _ in found_jobs], at(path, "dag"))
        return [self.step(kind, job, where, joined) for kind, job, where in found_jobs]

    def _joined(self, dag: object, jobs: list[Raw], path: str) -> Raw:
        """The transitions that `dag` gives to jobs, by their ids."""
        names = [str(job.get("id")) for job in jobs]
        if isinstance(dag, dict):
            for name in dag:
                if name not in names:
                    self.report.add(at(path, name), name, "the id of a job of the same block")
            return dag
        order = dag.lower() if isinstance(dag, str) else dag
        if order == "sequential":
            return {name: [following] for name, following in pairwise(names)}
        if order not in (None, "parallel"):
            self.report.add(path, dag, "sequential, parallel, or an object of transitions")
        return {}

    def step(self, kind: str, job: Raw, path: str, joined: Raw) -> Raw:
        """One job as a step."""
        known = {*COMMON, *OF_KIND[kind], "transition"}
        step = _taken(job, COMMON)
        step["params"] = params_of(_others(job, known), path, self.report)
        KINDS[kind](self, job, step, path)
        written = job.get("transition") or joined.get(str(job.get("id")))
        if written:
            step["transition"] = {"successors": self._successors(written, at(path, "transition"))}
        return {"step" if kind == "job" else kind: step}

    def _successors(self, written: object, path: str) -> Raw:
        """`job`, `IF … THEN job` and at the end `OTHERWISE job`, which is the opposite of all conditions before."""
        made: Raw = {}
        conditions: list[str] = []
        entries = written if isinstance(written, list) else [written]
        for index, entry in enumerate(entries):
            here = at(path, index)
            if not isinstance(entry, str):
                self.report.add(here, entry, "a job, 'IF condition THEN job' or 'OTHERWISE job'")
                continue
            name, condition = entry.strip(), "true"
            if match := _IF.fullmatch(entry):
                condition, name = match[1], match[2]
                conditions.append(f"({condition})")
            elif match := _OTHERWISE.fullmatch(entry):
                name, condition = match[1], f"!({' || '.join(conditions)})"
                if not conditions or index + 1 < len(entries):
                    self.report.add(here, entry, "OTHERWISE at the end of a list with IF")
            if name in made:
                self.report.add(here, entry, f"each job once, and {shown(name)} is there already")
            made[name] = condition
        return made

    def _job(self, job: Raw, step: Raw, _: str) -> None:
        step.update(_taken(job, ("type", "sub_type", "retry_policy", "idempotent")))
        if job.get("type_version") is not None:
            step["sub_type_version"] = str(job["type_version"])

    def _subworkflow(self, job: Raw, step: Raw, path: str) -> None:
        step.update(_taken(job, ("sync", "explicit_params")))
        key = self._one_of(job, ("workflow_id", "subworkflow_id"), path)
        child = job.get(key) if job.get(key) is not None else job.get("id")
        if not isinstance(child, str | int) or isinstance(child, bool):
            self.report.add(at(path, key), child, "the id of a workflow")
        if key in job or SUBWORKFLOW_ID not in step["params"]:  # it may be an expression
            step["params"][SUBWORKFLOW_ID] = {"type": "STRING", "value": str(child)}
        version = job.get("version")
        if isinstance(version, str | int) and not isinstance(version, bool):
            step["params"][SUBWORKFLOW_VERSION] = {"type": "STRING", "value": str(version)}
        elif version is not None:
            self.report.add(at(path, "version"), version, "active, latest, default or the number of a version")

    def _foreach(self, job: Raw, step: Raw, path: str) -> None:
        concurrency = job.get(self._one_of(job, ("concurrency", "job_concurrency"), path))
        step.update(_without_nulls({**_taken(job, ("strict_ordering",)), "concurrency": concurrency}))
        self._block(job, step, path)
        ranges = job.get("ranges") or {}
        if not isinstance(ranges, dict):
            self.report.add(at(path, "ranges"), ranges, "an object of ranges")
            return
        values = step["params"][LOOP_PARAMS]["value"]
        for name, bounds in ranges.items():
            here = at(at(path, "ranges"), name)
            if name in values:
                self.report.add(here, name, "each parameter once, in params or in ranges")
            values[name] = self._range(bounds, here)

    def _range(self, bounds: object, path: str) -> Raw:
        if not isinstance(bounds, dict) or "to" not in bounds or bounds.keys() - {"from", "to", "increment"}:
            self.report.add(path, bounds, "an object with to, and perhaps from and increment")
            return {"type": "LONG_ARRAY", "value": []}
        first, end, increment = bounds.get("from", 0), bounds["to"], bounds.get("increment", 1)
        for key, bound in (("from", first), ("to", end), ("increment", increment)):
            if not isinstance(bound, str | int) or isinstance(bound, bool):
                self.report.add(at(path, key), bound, "an integer, or an expression for one")
        if increment == 0:
            self.report.add(at(path, "increment"), increment, "a number other than 0")
        return {"type": "LONG_ARRAY", "expression": f"Util.intsBetween({first}, {end}, {increment})"}

    def _while(self, job: Raw, step: Raw, path: str) -> None:
        step.update(_taken(job, ("condition",)))
        self._block(job, step, path)

    def _block(self, job: Raw, step: Raw, path: str) -> None:
        key = self._one_of(job, ("params", LOOP_PARAMS), path)
        values = job.get(key) or {}
        if not isinstance(values, dict):
            self.report.add(at(path, key), values, "an object of parameters")
            values = {}
        if LOOP_PARAMS in step["params"]:
            self.report.add(path, "!" + LOOP_PARAMS, f"{LOOP_PARAMS} that name each parameter, not one expression")
        step["params"][LOOP_PARAMS] = {"type": "MAP", "value": params_of(values, at(path, key), self.report)}
        step["steps"] = self.steps(job, path)

    def _one_of(self, job: Raw, keys: tuple[str, str], path: str) -> str:
        """The key that is there, of two that mean the same; the second if neither is."""
        given = [key for key in keys if job.get(key) is not None]
        if len(given) > 1:
            self.report.add(at(path, given[1]), job[given[1]], f"only one of {' and '.join(keys)}")
        return given[0] if given else keys[1]


KINDS: Final[dict[str, Callable[[_Form, Raw, Raw, str], None]]] = {
    "job": _Form._job,
    "subworkflow": _Form._subworkflow,
    "foreach": _Form._foreach,
    "while": _Form._while,
}


def _taken(raw: Raw, names: tuple[str, ...]) -> Raw:
    return {name: raw[name] for name in names if raw.get(name) is not None}


def _others(raw: Raw, known: set[str]) -> Raw:
    return {name: value for name, value in raw.items() if name not in known}


def _without_nulls(raw: Raw) -> Raw:
    return {name: value for name, value in raw.items() if value is not None}
