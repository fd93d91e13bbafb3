"""Each wrong loop or subworkflow is refused with the path of what is wrong and with what would be right there."""

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push, yaml_push
from tests.unit.definitions.composite_samples import NESTED, Json, computed, leading, long, longs, nested, text
from tests.unit.definitions.samples import GONE, changed, text_of
from tests.unit.definitions.test_bad_definitions import Bad

FAN = "workflow.steps[1].foreach"
FIRST = f"{FAN}.steps[0].step"
POLL = f"{FAN}.steps[1].while"
ASK = f"{POLL}.steps[0].step"
DEEP = f"{POLL}.steps[1].foreach"
CHILD = f"{DEEP}.steps[0].subworkflow"
SUB = f"{FAN}.steps[2].subworkflow"
AFTER = f"{FAN}.steps[3].step"
REPORT = "workflow.steps[2].step"
AGAIN = "workflow.steps[3].while"
NOT_EVALUABLE = "a parameter that can be evaluated"
VALUE = "params.loop_params.value"
ARRAYS = "one of STRING_ARRAY, LONG_ARRAY, DOUBLE_ARRAY, BOOLEAN_ARRAY in a foreach"
SCALARS = "one of STRING, LONG, DOUBLE, BOOLEAN in a while"


def from_foreach(*names: str) -> Json:
    return computed(f"params.getFromForeach({', '.join(repr(name) for name in names)})", "LONG_ARRAY")


def step(name: str, *after: str) -> Json:
    return {"step": {"id": name, "type": "NoOp", "params": {"amount": long(1)}, "transition": leading(*after)}}


FORMS = [
    Bad(f"{FAN}.steps", GONE, "a value, which is required"),
    Bad(f"{POLL}.steps", None, "a value, which is required"),
    Bad(f"{POLL}.steps", {}, "a list"),
    Bad(f"{DEEP}.concurrency", 0, "an integer from 1 to 500"),
    Bad(f"{DEEP}.concurrency", 501, "an integer from 1 to 500"),
    Bad(f"{FAN}.concurrency", "5", "an integer from 1 to 500"),
    Bad(f"{FAN}.concurrency", 1.5, "an integer from 1 to 500"),
    Bad(f"{FAN}.strict_ordering", "yes", "true or false"),
    Bad(f"{FAN}.condition", "true", "only the keys concurrency"),
    Bad(f"{FAN}.sync", True, "only the keys concurrency"),
    Bad(f"{FAN}.type", "foreach", "only the keys concurrency"),
    Bad(f"{POLL}.concurrency", 2, "only the keys condition"),
    Bad(f"{POLL}.retry_policy", {}, "only the keys condition"),
    Bad(f"{POLL}.conditon", "true", "the key 'condition'"),
    Bad(f"{POLL}.condition", None, "a value, which is required"),
    Bad(f"{POLL}.condition", 1, "text"),
    Bad(f"{POLL}.condition", "tries <", "an expression in SEL"),
    Bad(f"{POLL}.condition", "1 + 1", "an expression that is true or false"),
    Bad(f"{CHILD}.steps", [], "only the keys description"),
    Bad(f"{CHILD}.sync", "yes", "true or false"),
    Bad(f"{CHILD}.explicit_params", 1, "true or false"),
    Bad(f"{CHILD}.explicit_param", True, "the key 'explicit_params'"),
    Bad(f"{CHILD}.idempotent", False, "only the keys description"),
    Bad(f"{DEEP}.steps[0]", {"loop": {}}, "an object with one key of step, subworkflow, foreach"),
    Bad(f"{DEEP}.steps[0]", [], "an object with one key of step, subworkflow, foreach"),
    Bad(f"{DEEP}.failure_mode", "RETRY", "one of FAIL_AFTER_RUNNING, FAIL_IMMEDIATELY"),
    Bad(f"{DEEP}.timeout", "soon", "a duration of at most 120 days"),
]
LOOP_PARAMS = [
    Bad(f"{DEEP}.params", {"asked": long(1)}, "a value: it is a required parameter", at=".loop_params"),
    Bad(f"{DEEP}.params.loop_params", longs(1), "a parameter that a definition may set so (its type is MAP"),
    Bad(f"{DEEP}.params.loop_params", {"type": "MAP", "value": [1]}, "the definition of a parameter (the value of a"),
    Bad(
        f"{AGAIN}.params.loop_params",
        {"type": "MAP", "expression": "params.get('i')"},
        "a value that names each parameter",
        at=".expression",
    ),
    Bad(f"{DEEP}.params.loop_index", long(1), "a parameter that a definition may set so"),
    Bad(f"{POLL}.params.condition", {"type": "BOOLEAN", "value": True}, "a parameter that a definition may set so"),
    Bad(f"{FAN}.{VALUE}.loop_index", longs(1), "a name that the system does not use itself"),
    Bad(f"{POLL}.{VALUE}.loop_index", long(1), "a name that the system does not use itself"),
    Bad(f"{POLL}.{VALUE}.condition", long(1), "a name that the system does not use itself"),
    Bad(f"{FAN}.{VALUE}.params", longs(1), "a name that the system does not use itself"),
    Bad(f"{POLL}.{VALUE}.i", long(1), "a name that the loop around it, 'fan', does not use"),
    Bad(f"{DEEP}.{VALUE}.i", longs(1), "a name that the loop around it, 'fan', does not use"),
    Bad(f"{DEEP}.{VALUE}.tries", longs(1), "a name that the loop around it, 'poll', does not use"),
    Bad(f"{FAN}.{VALUE}.i", long(1), ARRAYS, at=".type"),
    Bad(f"{DEEP}.{VALUE}.k", {"type": "STRING_MAP", "value": {"a": "b"}}, ARRAYS, at=".type"),
    Bad(f"{DEEP}.{VALUE}.k", {"type": "MAP", "value": {"a": long(1)}}, ARRAYS, at=".type"),
    Bad(f"{DEEP}.{VALUE}.k", computed("tries"), ARRAYS, at=".type"),
    Bad(f"{POLL}.{VALUE}.tries", longs(1), SCALARS, at=".type"),
    Bad(f"{AGAIN}.{VALUE}.j", {"type": "STRING_MAP", "value": {"a": "b"}}, SCALARS, at=".type"),
    Bad(
        f"{FAN}.{VALUE}.i",
        {"type": "LONG_ARRAY", "value": ["x"]},
        "the definition of a",
        at=f"{FAN}.params.loop_params",
    ),
    Bad(
        f"{FAN}.{VALUE}.i", {"type": "LONG_ARRAY"}, "the definition of a parameter (in", at=f"{FAN}.params.loop_params"
    ),
    Bad(f"{FAN}.{VALUE}.i", [1, 2], "the definition of a parameter (in", at=f"{FAN}.params.loop_params"),
    Bad(f"{FAN}.{VALUE}.i", computed("1 +", "LONG_ARRAY"), "an expression in SEL", at=".expression"),
    Bad(f"{FAN}.{VALUE}.i", computed("5", "LONG_ARRAY"), NOT_EVALUABLE),
    Bad(f"{DEEP}.{VALUE}.k", computed("1 / 0", "LONG_ARRAY"), NOT_EVALUABLE),
    Bad(f"{DEEP}.{VALUE}.k", computed("Util.intsBetween(0, 25001, 1)", "LONG_ARRAY"), NOT_EVALUABLE),
    Bad(f"{DEEP}.{VALUE}.k", {**longs(1), "validator": "param.size() > 2"}, NOT_EVALUABLE),
    Bad(f"{DEEP}.{VALUE}.k", {**longs(), "validator": "@NotEmpty"}, NOT_EVALUABLE),
    Bad(
        f"{FAN}.{VALUE}.i",
        {**computed("Util.intsBetween(0, color.length(), 1)", "LONG_ARRAY"), "validator": "param.size() > 3"},
        NOT_EVALUABLE,
    ),
    Bad(f"{DEEP}.{VALUE}.k", {**longs(1), "validator": "param.size( >"}, "an expression in SEL", at=".validator"),
    Bad(
        f"{DEEP}.{VALUE}.k",
        {**longs(1), "validator": "other > 1"},
        "a validator (its validator refers",
        at=".validator",
    ),
    Bad(f"{POLL}.{VALUE}.tries", {**long(0), "validator": "value > 0"}, NOT_EVALUABLE),
    Bad(f"{AGAIN}.params.loop_params", {"type": "MAP", "value": {"i": long(0)}, "validator": "@Min(2)"}, NOT_EVALUABLE),
    Bad(
        f"{FAN}.{VALUE}",
        {"i": longs(*range(251)), "j": longs(*range(100))},
        "at most 25,000 combinations of values",
    ),
    Bad(
        f"{DEEP}.{VALUE}",
        {name: longs(*range(50)) for name in ("a", "b", "c", "d", "e", "f")},
        "at most 25,000 combinations of values",
    ),
    Bad(
        f"{DEEP}.{VALUE}",
        {name: computed("Util.intsBetween(0, 200, 1)", "LONG_ARRAY") for name in "xy"},
        "at most 25,000 combinations of values",
    ),
]
GRAPHS = [
    Bad(f"{ASK}.transition.successors.depe", "true", "a step of the same block, such as 'deep'"),
    Bad(f"{ASK}.transition.successors.first", "true", "a step of the same block"),
    Bad(f"{FIRST}.transition.successors.ask", "true", "a step of the same block"),
    Bad(f"{FIRST}.transition.successors.fan", "true", "a step of the same block"),
    Bad(f"{REPORT}.transition.successors.first", "true", "a step of the same block"),
    Bad(f"{CHILD}.id", "load", "an id that no other step has, and workflow.steps[0].step has this one"),
    Bad(f"{CHILD}.id", "poll", f"an id that no other step has, and {POLL} has this one"),
    Bad(f"{CHILD}.id", "a__b", "an id without '__'"),
    Bad(f"{DEEP}.transition", {"predecessors": ["first"]}, "what follows from the successors", at=".predecessors"),
    Bad(f"{FAN}.steps", [step("first", "a", "b"), step("a", "b"), step("b", "a")], "loops that begin at one step"),
    Bad(
        f"{FAN}.steps",
        [step("first"), step("a", "b"), step("b", "a")],
        "a path to every step from a step without predecessors",
    ),
    Bad(f"{ASK}.transition.successors.deep", "tries >", "an expression in SEL"),
]
CHILDREN = [
    Bad(f"{CHILD}.params", {}, "a value: it is a required parameter", at=".subworkflow_id"),
    Bad(f"{CHILD}.params.subworkflow_id", longs(1), "a parameter that a definition may set so (its type is STRING"),
    Bad(f"{CHILD}.params.subworkflow_id", text(""), "the id of a workflow: an id of letters", at=".value"),
    Bad(f"{SUB}.params.subworkflow_id", text("a b"), "the id of a workflow: an id of letters", at=".value"),
    Bad(f"{SUB}.params.subworkflow_id", text("maestro_foreach_x"), "the id of a workflow: an id that", at=".value"),
    Bad(f"{SUB}.params.subworkflow_version", text("newest"), "active, latest, default or the number", at=".value"),
    Bad(f"{SUB}.params.subworkflow_version", text("0"), "active, latest, default or the number", at=".value"),
    Bad(f"{SUB}.params.subworkflow_version", text("-1"), "active, latest, default or the number", at=".value"),
    Bad(f"{SUB}.params.subworkflow_version", text("1.5"), "active, latest, default or the number", at=".value"),
]
REFERENCES = [
    Bad(f"{ASK}.params.x", computed("fan__color"), "the name of the parameter alone: 'fan' is a loop around 'ask'"),
    Bad(f"{FIRST}.params.amount", computed("load__n"), "a step of the same block ('load' is outside of 'fan', and a"),
    Bad(f"{FIRST}.params.part", text("${load__n}"), "a step of the same block ('load' is outside of 'fan', and a"),
    Bad(f"{ASK}.params.x", computed("first__amount"), "a step of the same block ('first' is outside of 'poll', and a"),
    Bad(f"{CHILD}.params.told", computed("ask__tries"), "a step of the same block ('ask' is outside of 'deep', and a"),
    Bad(
        f"{REPORT}.params.x", computed("first__amount"), "a step of the same block ('first' is inside 'fan', and params"
    ),
    Bad(f"{REPORT}.params.x", computed("ask__tries"), "a step of the same block ('ask' is inside 'fan')"),
    Bad(f"{REPORT}.transition.successors.again", "ask__tries > 1", "a step of the same block ('ask' is inside 'fan')"),
    Bad(f"{FAN}.{VALUE}.j", computed("first__list", "LONG_ARRAY"), "a step of the same block ('first' is inside 'fan'"),
    Bad(f"{FIRST}.params.amount", computed("after__got"), "a step that leads to 'first', which 'after' does not"),
    Bad(f"{ASK}.signal_outputs", [{"name": "s", "params": {"n": computed("load__n")}}], "a step of", at="[0].params.n"),
    Bad(f"{ASK}.params.x", computed("params.getFromStep('load', 'n')"), "a step of the same block ('load' is outside"),
    Bad(f"{POLL}.condition", "ask__tries < 3", "no parameters of other steps"),
    Bad(f"{POLL}.condition", "first__amount < 3", "no parameters of other steps"),
    Bad(f"{POLL}.condition", "index < 3", "a parameter that the loop carries on: 'index' must be in its loop_params"),
    Bad(f"{POLL}.condition", "params.getFromStep('first', 'amount') < 3", "no functions that ask for other steps"),
    Bad(
        f"{REPORT}.params.all", from_foreach("fam", "first", "amount"), "the id of a foreach of the same block, such as"
    ),
    Bad(f"{REPORT}.params.all", from_foreach("again", "count", "i"), "the id of a foreach of the same block"),
    Bad(f"{REPORT}.params.all", from_foreach("deep", "child", "told"), "the id of a foreach of the same block"),
    Bad(f"{REPORT}.params.all", from_foreach("load", "first", "n"), "the id of a foreach of the same block"),
    Bad(
        f"{REPORT}.params.all",
        from_foreach("fan", "frist", "amount"),
        "the id of a step directly inside 'fan', such as",
    ),
    Bad(f"{REPORT}.params.all", from_foreach("fan", "ask", "tries"), "the id of a step directly inside 'fan'"),
    Bad(f"{REPORT}.params.all", from_foreach("fan", "first", "amuont"), "the name of a parameter of 'first', such as"),
    Bad(f"{REPORT}.params.all", from_foreach("fan", "first", "list"), "a parameter of 'first' of type STRING, LONG"),
    Bad("workflow.steps[0].step.params.x", from_foreach("fan", "first", "amount"), "a foreach that leads to 'load'"),
    Bad(f"{REPORT}.params.all", computed("params.getFromForeach('f' + 'an', 'first', 'amount')"), "names as literals"),
    Bad(f"{FAN}.params.color", from_foreach("fan", "first", "amount"), "a foreach that leads to 'fan'"),
    Bad(f"{FIRST}.params.x", from_foreach("fan", "first", "amount"), "the id of a foreach of the same block"),
    Bad(
        f"{AFTER}.params.got", computed("params.getFromSubworkflow('poll', 'a', 'b')"), "the id of a subworkflow of the"
    ),
    Bad(f"{FIRST}.params.x", computed("params.getFromSubworkflow('sub', 'a', 'b')"), "a subworkflow that leads to"),
]


@pytest.mark.parametrize("bad", [*FORMS, *LOOP_PARAMS, *GRAPHS, *CHILDREN, *REFERENCES], ids=repr)
def test_a_wrong_value_is_refused_at_its_path_with_what_would_be_right(bad: Bad) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(changed(bad.place, bad.value, NESTED)))

    problem = refused.value.problems[0]
    assert (problem.path, problem.expected[: len(bad.expected)]) == (bad.path, bad.expected)
    assert {one.path for one in refused.value.problems} == {problem.path}
    assert len(problem.value) < 400


def test_the_sample_itself_is_right() -> None:
    assert parse_push(text_of(NESTED)).workflow.steps[1].id == "fan"


def test_a_condition_of_a_loop_may_read_its_own_iterations() -> None:
    condition = "params.getFromForeach('fan', 'first', 'amount').length > 0"

    push = parse_push(text_of(changed(f"{FAN}.transition.successors.report", condition, NESTED)))

    assert push.workflow.steps[1].successors["report"] == condition


def test_a_child_counts_as_a_level_of_its_own() -> None:
    child = {"subworkflow": {"id": "child", "params": {"subworkflow_id": text("other")}}}

    parse_push(text_of({"workflow": {"id": "deep", "steps": nested(8, [child])}}))
    with pytest.raises(DefinitionRefused, match="at most 10 levels, and the child is a level of its own"):
        parse_push(text_of({"workflow": {"id": "deep", "steps": nested(9, [child])}}))


def test_loops_of_both_kinds_nest_nine_deep_and_no_deeper() -> None:
    work = {"step": {"id": "work", "type": "NoOp"}}

    parse_push(text_of({"workflow": {"id": "deep", "steps": nested(9, [work])}}))
    with pytest.raises(DefinitionRefused, match="at most 10 deep"):
        parse_push(text_of({"workflow": {"id": "deep", "steps": nested(10, [work])}}))


def in_loop(**more: object) -> str:
    """A foreach in YAML with other keys than the right ones."""
    loop = {"id": "f", "params": {"i": [1]}, "jobs": [{"job": {"id": "a", "type": "NoOp"}}], **more}
    return text_of({"Workflow": {"id": "w", "jobs": [{"foreach": loop}]}})


def of_child(**more: object) -> str:
    """A subworkflow inside a loop in YAML."""
    return in_loop(jobs=[{"while": {"id": "w", "condition": "true", "jobs": [{"subworkflow": {"id": "c", **more}}]}}])


LOOP = "Workflow.jobs[0].foreach"
OF_CHILD = f"{LOOP}.jobs[0].while.jobs[0].subworkflow"
STEP_F = "workflow.steps[0].foreach"
YAML = {
    "two names for the values": (
        in_loop(loop_params={"i": [1]}),
        f"{LOOP}.loop_params",
        "only one of params and loop_",
    ),
    "values that are no object": (in_loop(params=[1]), f"{LOOP}.params", "an object of parameters"),
    "values as an expression": (in_loop(**{"!loop_params": "x"}), LOOP, "loop_params that name each parameter"),
    "a value of no type": (in_loop(params={"i": [1, "a"]}), f"{LOOP}.params.i", "a value with a clear type"),
    "no value": (in_loop(params={"i": None}), f"{LOOP}.params.i", "a value with a clear type"),
    "a wrong type": (in_loop(params={"i<list>": [1]}), f"{LOOP}.params.i<list>", "one of the types string, long"),
    "a wrong name": (in_loop(params={"i j": [1]}), f"{LOOP}.params.i j", "a parameter such as 'rows'"),
    "a scalar": (in_loop(params={"i": 1}), f"{STEP_F}.{VALUE}.i.type", ARRAYS),
    "an expression of one value": (in_loop(params={"!i<long>": "1"}), f"{STEP_F}.{VALUE}.i.type", ARRAYS),
    "two names for the concurrency": (
        in_loop(concurrency=1, job_concurrency=2),
        f"{LOOP}.job_concurrency",
        "only one of concurrency and job_concurrency",
    ),
    "no concurrency at all": (in_loop(concurrency=0), f"{STEP_F}.concurrency", "an integer from 1 to 500"),
    "too much concurrency": (in_loop(job_concurrency=501), f"{STEP_F}.concurrency", "an integer from 1 to 500"),
    "an order that is none": (in_loop(strict_ordering="no"), f"{STEP_F}.strict_ordering", "true or false"),
    "ranges that are no object": (in_loop(ranges=[1]), f"{LOOP}.ranges", "an object of ranges"),
    "a range that is no object": (in_loop(ranges={"j": 5}), f"{LOOP}.ranges.j", "an object with to, and perhaps from"),
    "a range without an end": (in_loop(ranges={"j": {"from": 5}}), f"{LOOP}.ranges.j", "an object with to, and"),
    "a range with more": (in_loop(ranges={"j": {"to": 5, "by": 1}}), f"{LOOP}.ranges.j", "an object with to, and"),
    "a range to a list": (in_loop(ranges={"j": {"to": [5]}}), f"{LOOP}.ranges.j.to", "an integer, or an expression"),
    "a range without steps": (
        in_loop(ranges={"j": {"to": 5, "increment": 0}}),
        f"{LOOP}.ranges.j.increment",
        "a number other than 0",
    ),
    "a range of the same name": (
        in_loop(ranges={"i": {"to": 5}}),
        f"{LOOP}.ranges.i",
        "each parameter once, in params",
    ),
    "ranges of too many": (
        in_loop(params={}, ranges={"a": {"to": 200}, "b": {"to": 200}}),
        f"{STEP_F}.{VALUE}",
        "at most 25,000 combinations",
    ),
    "a range of words": (
        in_loop(ranges={"j": {"to": "5 +"}}),
        f"{STEP_F}.{VALUE}.j.expression",
        "an expression in SEL",
    ),
    "no jobs": (in_loop(jobs=[]), f"{STEP_F}.steps", "at least one step"),
    "jobs that are no list": (in_loop(jobs={"a": 1}), f"{LOOP}.jobs", "a list of jobs"),
    "a job of no kind": (in_loop(jobs=[{"loop": {}}]), f"{LOOP}.jobs[0]", "an object with one key of job, subworkflow"),
    "a job that is text": (in_loop(jobs=[{"while": "x"}]), f"{LOOP}.jobs[0].while", "an object"),
    "an order of jobs of another block": (in_loop(dag={"f": ["a"]}), f"{LOOP}.dag.f", "the id of a job of the same"),
    "an order in no words": (in_loop(dag="random"), f"{LOOP}.dag", "sequential, parallel, or an object"),
    "a while without a condition": (
        in_loop(jobs=[{"while": {"id": "w", "jobs": [{"job": {"id": "a", "type": "NoOp"}}]}}]),
        f"{STEP_F}.steps[0].while.condition",
        "a value, which is required",
    ),
    "two names for a child": (
        of_child(workflow_id="a", subworkflow_id="b"),
        f"{OF_CHILD}.subworkflow_id",
        "only one of",
    ),
    "a child that is a list": (of_child(workflow_id=["a"]), f"{OF_CHILD}.workflow_id", "the id of a workflow"),
    "a version that is a list": (of_child(version=[1]), f"{OF_CHILD}.version", "active, latest, default or the number"),
    "a version of no name": (
        of_child(version="newest"),
        f"{STEP_F}.steps[0].while.steps[0].subworkflow.params.subworkflow_version.value",
        "active, latest, default or the number",
    ),
    "a child of a wrong id": (
        of_child(workflow_id="a b"),
        f"{STEP_F}.steps[0].while.steps[0].subworkflow.params.subworkflow_id.value",
        "the id of a workflow: an id of letters",
    ),
    "a child that waits perhaps": (
        of_child(sync="perhaps"),
        f"{STEP_F}.steps[0].while.steps[0].subworkflow.sync",
        "true or false",
    ),
}


@pytest.mark.parametrize("name", YAML)
def test_a_wrong_composite_in_yaml_is_refused_at_its_path(name: str) -> None:
    written, path, expected = YAML[name]

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(yaml_push(written))

    problem = refused.value.problems[0]
    assert (problem.path, problem.expected[: len(expected)]) == (path, expected)
