"""Each wrong definition is refused with the path of what is wrong and with what would be right there."""

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push
from tests.unit.definitions.samples import FULL, GONE, changed, text_of

LOAD = "workflow.steps[0].step"
FOREACH = "workflow.steps[1].foreach"
WHILE = f"{FOREACH}.steps[0].while"
CRON = "workflow.time_triggers[0]"
SIGNALS = "workflow.signal_triggers[0]"
REGION = f"{SIGNALS}.definitions.db/raw.match_params.region"


class Bad:
    """A wrong value at a place, what would be right, and where it is said if not at that place."""

    def __init__(self, place: str, value: object, expected: str, at: str = "") -> None:
        self.place = place
        self.value = value
        self.expected = expected
        self.path = place + at if at[:1] in ("", ".", "[") else at

    def __repr__(self) -> str:
        return f"{self.place}={str(self.value)[:40]}"


PROPERTIES = [
    Bad("properties", [], "an object"),
    Bad("properties.ownr", "x", "the key 'owner'"),
    Bad("properties.owner", 7, "a name, or an object with a name"),
    Bad("properties.owner", "", "a name, or an object with a name of at least 1 character"),
    Bad("properties.owner", {"team": "x"}, "a name, or an object with a name"),
    Bad("properties.run_strategy", "PARALEL", "one of SEQUENTIAL, STRICT_SEQUENTIAL, FIRST_ONLY"),
    Bad("properties.run_strategy", 0, "an integer from 1 to 1,000", at=".workflow_concurrency"),
    Bad("properties.run_strategy", 1001, "an integer from 1 to 1,000", at=".workflow_concurrency"),
    Bad("properties.run_strategy", True, "one of SEQUENTIAL, STRICT_SEQUENTIAL, FIRST_ONLY"),
    Bad(
        "properties.run_strategy",
        {"rule": "SEQUENTIAL", "workflow_concurrency": 2},
        "1, because the rule is SEQUENTIAL",
        at=".workflow_concurrency",
    ),
    Bad("properties.run_strategy", {"rule": "x"}, "one of SEQUENTIAL, STRICT_SEQUENTIAL, FIRST_ONLY", at=".rule"),
    Bad("properties.run_strategy.workflow_concurency", 2, "the key 'workflow_concurrency'"),
    Bad("properties.run_strategy.workflow_concurrency", 0, "an integer from 1 to 1,000"),
    Bad("properties.step_concurrency", 0, "an integer from 1 to 1,000"),
    Bad("properties.step_concurrency", 1001, "an integer from 1 to 1,000"),
    Bad("properties.step_concurrency", "20", "an integer from 1 to 1,000"),
    Bad("properties.alerting_disabled", "no", "true or false"),
    Bad("properties.description", "x" * 16385, "at most 16,384 characters"),
    Bad("properties.tags", ["a", "a"], "each tag once", at="[1]"),
    Bad("properties.reset_step_concurrency", True, "the key 'step_concurrency'"),
    Bad("properties.alerting", [], "an object"),
    Bad("is_active", "yes", "true or false"),
]
WORKFLOW = [
    Bad("workflow", GONE, "an object"),
    Bad("workflow", [1], "an object"),
    Bad("workflow.id", GONE, "a value, which is required"),
    Bad("workflow.id", "a b", "an id of letters, digits, '.', '-' and '_'"),
    Bad("workflow.id", "-a", "an id of letters, digits, '.', '-' and '_'"),
    Bad("workflow.id", "", "an id of letters, digits, '.', '-' and '_'"),
    Bad("workflow.id", "x" * 129, "at most 128 characters"),
    Bad("workflow.id", "maestro_x", "an id that does not begin with 'maestro_' or end with"),
    Bad("workflow.id", "x_maestro", "an id that does not begin with 'maestro_' or end with"),
    Bad("workflow.id", 12, "an id of letters, digits, '.', '-' and '_'"),
    Bad("workflow.name", "x" * 257, "at most 256 characters"),
    Bad("workflow.description", 7, "text"),
    Bad("workflow.descripton", "x", "the key 'description'"),
    Bad("workflow.tags", ["a", "b", "a"], "each tag once", at="[2]"),
    Bad("workflow.tags", ["50%"], "a tag of letters, digits, blanks and . , : @ & = ' ( ) { }", at="[0].name"),
    Bad("workflow.tags", [""], "a tag of letters, digits, blanks and . , : @ & = ' ( ) { }", at="[0].name"),
    Bad("workflow.tags", [{"name": "a", "permit": 3}], "no permit, which the system sets", at="[0].permit"),
    Bad(
        "workflow.tags",
        [{"name": "a", "namespace": "mine"}],
        "one of SYSTEM, RUNTIME, JOB_TEMPLATE, NOTEBOOK_TEMPLATE",
        at="[0].namespace",
    ),
    Bad("workflow.tags", "a", "a list"),
    Bad("workflow.criticality", "urgent", "one of CRITICAL, HIGH, MEDIUM, LOW"),
    Bad("workflow.criticality", "OTHER", "one of CRITICAL, HIGH, MEDIUM, LOW"),
    Bad("workflow.instance_step_concurrency", 0, "an integer from 1 to 999"),
    Bad("workflow.instance_step_concurrency", 1000, "an integer from 1 to 999"),
]
PARAMS = [
    Bad("workflow.params", [], "an object"),
    Bad("workflow.params.hours", 7, "the definition of a parameter (it is not an object with a"),
    Bad(
        "workflow.params.hours",
        {"type": "INT", "value": 7},
        "the definition of a parameter ('INT' is not a valid type: expected",
    ),
    Bad(
        "workflow.params.hours",
        {"type": "LONG", "value": "many"},
        "the definition of a parameter (its value is STRING 'many'",
    ),
    Bad(
        "workflow.params.hours",
        {"type": "LONG", "value": 9223372036854775808},
        "the definition of a parameter (its value is DOUBLE",
    ),
    Bad(
        "workflow.params.hours",
        {"type": "LONG", "value": 1, "expression": "1"},
        "the definition of a parameter (it needs exactly one of",
    ),
    Bad("workflow.params.day", {"type": "STRING", "expression": "1 +"}, "an expression in SEL", at=".expression"),
    Bad(
        "workflow.params.day", {"type": "STRING", "expression": "Util.nothing(1)"}, "a parameter that can be evaluated"
    ),
    Bad("workflow.params.day", {"type": "STRING", "expression": "nobody + 1"}, "a parameter that can be evaluated"),
    Bad("workflow.params.day", {"type": "STRING", "value": "$nobody"}, "a parameter that can be evaluated"),
    Bad("workflow.params.day", {"type": "LONG", "expression": "1 / 0"}, "a parameter that can be evaluated"),
    Bad("workflow.params.day", {"type": "STRING", "expression": "day"}, "a parameter that can be evaluated"),
    Bad("workflow.params.day", {"type": "LONG", "expression": "'x'"}, "a parameter that can be evaluated"),
    Bad(
        "workflow.params.rate.validator", "value > 1.0", "a parameter that can be evaluated", at="workflow.params.rate"
    ),
    Bad("workflow.params.rate.validator", "value >", "an expression in SEL"),
    Bad("workflow.params.rate.validator", "@Odd", "a validator (its validator '@Odd' is neither an expression"),
    Bad("workflow.params.rate.validator", "other > 1", "a validator (its validator refers to 'other', and may only"),
    Bad(
        "workflow.params.owner",
        {"type": "STRING", "value": "bob"},
        "a parameter that a definition may set so (it is reserved",
    ),
    Bad(
        "workflow.params.hours",
        {"type": "LONG", "value": 2, "source": "SYSTEM"},
        "the definition of a parameter ('source' can only be set by the",
    ),
    Bad(
        "workflow.params.hours",
        {"type": "LONG", "value": 2, "mode": "FROZEN"},
        "the definition of a parameter ('FROZEN' is not a valid mode:",
    ),
    Bad(
        "workflow.params.day",
        {"type": "MAP", "value": {"a": {"type": "LONG", "value": "x"}}},
        "the definition of a parameter (in 'a' its value is STRING",
    ),
    Bad("workflow.params.day", {"type": "STRING", "expression": "x" * 10001}, "an expression in SEL", at=".expression"),
]
STEPS = [
    Bad("workflow.steps", GONE, "a value, which is required"),
    Bad("workflow.steps", [], "from 1 to 300 steps, including steps of inner blocks"),
    Bad("workflow.steps", {}, "a list"),
    Bad("workflow.steps[2]", {"stp": {}}, "an object with one key of step, subworkflow, foreach"),
    Bad(
        "workflow.steps[2]",
        {"step": {"id": "none", "type": "NoOp"}, "while": {}},
        "an object with one key of step, subworkflow, foreach",
    ),
    Bad("workflow.steps[2]", "none", "an object with one key of step, subworkflow, foreach"),
    Bad(
        "workflow.steps",
        [{"step": {"id": f"s{n}", "type": "NoOp"}} for n in range(301)],
        "from 1 to 300 steps, including steps of inner blocks",
    ),
    Bad(f"{LOAD}.id", GONE, "a value, which is required"),
    Bad(f"{LOAD}.id", "1st", "an id of letters, digits, '.', '-' and '_' that does not"),
    Bad(f"{LOAD}.id", "a__b", "an id without '__', which stands between a step and its"),
    Bad(f"{LOAD}.id", "maestro_a", "an id that does not begin with 'maestro_'"),
    Bad(f"{LOAD}.id", "x" * 129, "at most 128 characters"),
    Bad(f"{WHILE}.steps[0].step.id", "load", "an id that no other step has, and workflow.steps[0].step"),
    Bad(f"{LOAD}.type", GONE, "a value, which is required"),
    Bad(f"{LOAD}.type", "foreach", "a type of your own: foreach is a kind of step, not a type"),
    Bad(f"{LOAD}.type", "a b", "a type of letters, digits, '.', '-' and '_'"),
    Bad(f"{LOAD}.sub_type", 3, "a type of letters, digits, '.', '-' and '_'"),
    Bad(f"{LOAD}.successors", {}, "only the keys description, failure_mode, id, idempotent"),
    Bad(f"{LOAD}.transition.successors.fam", "true", "a step of the same block, such as 'fan'"),
    Bad(f"{LOAD}.transition.successors.ask", "true", "a step of the same block"),
    Bad(f"{LOAD}.transition.successors.fan", "n >", "an expression in SEL"),
    Bad(f"{LOAD}.transition.successors.fan", 1, "text"),
    Bad(f"{LOAD}.transition.successors.fan", "1 + 1", "an expression that is true or false"),
    Bad(f"{LOAD}.transition.successors", ["fan"], "an object"),
    Bad(f"{FOREACH}.transition.predecessors", ["none"], "what follows from the successors of the others ('load'), or"),
    Bad(f"{FOREACH}.transition.predecessors", [], "what follows from the successors of the others ('load'), or"),
    Bad(f"{FOREACH}.transition.predecessors", "load", "a list"),
    Bad(f"{LOAD}.failure_mode", "ignore", "one of FAIL_AFTER_RUNNING, FAIL_IMMEDIATELY, IGNORE_FAILURE"),
    Bad(f"{LOAD}.timeout", "0 s", "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad(f"{LOAD}.timeout", 10368001, "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad(f"{LOAD}.idempotent", "no", "true or false"),
    Bad(f"{LOAD}.retry_policy", 3, "an object"),
    Bad(f"{LOAD}.retry_policy.error_retry_limit", 100, "an integer from 0 to 99"),
    Bad(f"{LOAD}.retry_policy.platform_retry_limit", "100", "an integer from 0 to 99"),
    Bad(f"{LOAD}.retry_policy.timeout_retry_limit", "often", "an integer from 0 to 99"),
    Bad(f"{LOAD}.retry_policy.error_retry_limit", -1, "an integer from 0, or text such as '90 s' or '${limit}'"),
    Bad(f"{LOAD}.retry_policy.retries", 1, "only the keys backoff, error_retry_limit"),
    Bad(f"{LOAD}.retry_policy.backoff.type", "linear", "one of EXPONENTIAL_BACKOFF, FIXED_BACKOFF"),
    Bad(f"{LOAD}.retry_policy.backoff.error_retry_backoff_in_secs", 0, "a duration from 1 second to 1 day"),
    Bad(f"{LOAD}.retry_policy.backoff.platform_retry_backoff_in_secs", 86401, "a duration from 1 second to 1 day"),
    Bad(f"{LOAD}.retry_policy.backoff.timeout_retry_backoff_in_secs", "2 days", "a duration from 1 second to 1 day"),
    Bad(f"{LOAD}.retry_policy.backoff.error_retry_exponent", 3, "only the keys error_retry_backoff_in_secs"),
    Bad(
        f"{LOAD}.retry_policy.backoff",
        {"error_retry_exponent": 0},
        "an integer from 1 to 99",
        at=".error_retry_exponent",
    ),
    Bad(
        f"{LOAD}.retry_policy.backoff",
        {"platform_retry_limit_in_secs": "500 ms"},
        "a duration from 1 second to 1 day",
        at=".platform_retry_limit_in_secs",
    ),
    Bad(
        f"{LOAD}.params.step_id",
        {"type": "STRING", "value": "x"},
        "a parameter that a definition may set so (it is reserved",
    ),
    Bad(f"{LOAD}.params.n", {"type": "LONG", "expression": "if"}, "an expression in SEL", at=".expression"),
    Bad(f"{LOAD}.signal_dependencies", [{"match_params": {}}], "a value, which is required", at="[0].name"),
    Bad(f"{LOAD}.signal_dependencies[0].match_params.rows.operator", "~", "one of =, !=, <, <=, >, >=, IN, PREFIX"),
    Bad(
        f"{LOAD}.signal_dependencies[0].match_params.rows.operator",
        "in",
        "a parameter of type STRING_ARRAY or LONG_ARRAY",
        at="workflow.steps[0].step.signal_dependencies[0].match_params.rows",
    ),
    Bad(
        f"{LOAD}.signal_dependencies[0].match_params.rows.operator",
        "prefix",
        "a parameter of type STRING",
        at="workflow.steps[0].step.signal_dependencies[0].match_params.rows",
    ),
    Bad(f"{LOAD}.signal_dependencies[0].match", "first", "one of any, latest"),
    Bad(
        f"{LOAD}.signal_dependencies[0].match_params.rows.param",
        {"type": "DOUBLE", "value": 1},
        "a parameter of type STRING or LONG",
        at="workflow.steps[0].step.signal_dependencies[0].match_params.rows",
    ),
    Bad(
        f"{LOAD}.signal_dependencies[0].match_params.age",
        {"param": {"type": "LONG", "value": 1}, "operator": "<"},
        "at most one parameter with an operator other than '=' and 'in'",
        at="workflow.steps[0].step.signal_dependencies[0].match_params",
    ),
    Bad(f"{LOAD}.signal_dependencies[0].name", "", "a name of at least 1 character"),
    Bad(f"{LOAD}.signal_outputs[0].params.n", {"type": "BOOLEAN", "value": True}, "a parameter of type STRING or LONG"),
    Bad(f"{LOAD}.signal_outputs[0].name", "x" * 257, "at most 256 characters"),
    Bad(f"{FOREACH}.concurrency", 0, "an integer from 1 to 500"),
    Bad(f"{FOREACH}.concurrency", 501, "an integer from 1 to 500"),
    Bad(f"{FOREACH}.steps", [], "at least one step"),
    Bad(f"{FOREACH}.params", {}, "a value: it is a required parameter", at=".loop_params"),
    Bad(
        f"{FOREACH}.params.loop_params",
        {"type": "LONG", "value": 1},
        "a parameter that a definition may set so (its type is MAP",
    ),
    Bad(f"{FOREACH}.retry_policy", {}, "only the keys concurrency, description, failure_mode, id"),
    Bad(f"{WHILE}.condition", GONE, "a value, which is required"),
    Bad(f"{WHILE}.condition", "tries <", "an expression in SEL"),
    Bad(
        f"{WHILE}.params.loop_params.value.i",
        {"type": "LONG", "value": 1},
        "a name that the loop around it, 'fan', does not use",
    ),
    Bad("workflow.steps[3].subworkflow.params", {}, "a value: it is a required parameter", at=".subworkflow_id"),
    Bad("workflow.steps[3].subworkflow.sync", "yes", "true or false"),
    Bad("workflow.steps[4].template.sub_type", GONE, "a value, which is required"),
]
TRIGGERS = [
    Bad("workflow.timeout", 0, "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad("workflow.timeout", -1, "an integer from 0, or text such as '90 s' or '${limit}'"),
    Bad("workflow.timeout", "121 days", "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad("workflow.timeout", "soon", "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad("workflow.timeout", 1.5, "an integer from 0, or text such as '90 s' or '${limit}'"),
    Bad("workflow.timeout", True, "an integer from 0, or text such as '90 s' or '${limit}'"),
    Bad("workflow.timeout", "${day}h", "a duration of at most 120 days such as 90, '90 s' or '1 day"),
    Bad(f"{CRON}.type", "daily", "one of CRON, PREDEFINED, INTERVAL"),
    Bad(f"{CRON}.type", GONE, "a value, which is required"),
    Bad(f"{CRON}.cron", GONE, "five, six or seven fields such as '0 5 * * *'"),
    Bad(f"{CRON}.cron", "0 5 * *", "five, six or seven fields such as '0 5 * * *'"),
    Bad(f"{CRON}.cron", "61 5 * * *", "the minute from 0 to 59, a range or a step of it, instead of"),
    Bad(f"{CRON}.cron", "* * * * *", "times that are at least two minutes apart"),
    Bad(f"{CRON}.cron", "0 0 12 ? * FOO", "the day of week from 1 to 7, a range or a step of it, instead"),
    Bad(f"{CRON}.timezone", "Berlin", "a time zone such as 'Europe/Berlin'"),
    Bad(f"{CRON}.fuzzy_max_delay", "a while", "a duration from 1 second to 24 hours such as '10 min' or 600"),
    Bad("workflow.time_triggers[1].expression", "@never", "one of @hourly, @daily, @weekly, @monthly, @yearly"),
    Bad(f"{SIGNALS}.definitions", {}, "from 1 to 8 signals"),
    Bad(f"{SIGNALS}.definitions", {f"s{n}": {} for n in range(9)}, "from 1 to 8 signals"),
    Bad(
        f"{SIGNALS}.definitions.db/raw.join_keys",
        ["a", "b"],
        "the same number of join_keys for each signal",
        at="workflow.signal_triggers[0].definitions",
    ),
    Bad(f"{SIGNALS}.definitions.db/raw.join_keys", ["region"], "join keys that are not match_params too"),
    Bad(f"{REGION}.value", 1.5, "text or an integer"),
    Bad(f"{REGION}.operator", "like", "one of =, !=, <, <=, >, >="),
    Bad(f"{REGION}.value", 2**63, "text or an integer"),
    Bad(f"{REGION}.value", ["us"], "one value, because the operator is '='"),
    Bad(REGION, {"value": "us", "operator": "in"}, "a list of 1 to 100 values", at=".value"),
    Bad(REGION, {"value": [], "operator": "in"}, "a list of 1 to 100 values", at=".value"),
    Bad(REGION, {"value": [1.5], "operator": "in"}, "text or an integer", at=".value"),
    Bad(REGION, {"value": 1, "operator": "prefix"}, "text of at most 256 characters", at=".value"),
    Bad(REGION, {"value": "x" * 257, "operator": "prefix"}, "text of at most 256", at=".value"),
    Bad(f"{SIGNALS}.definitions.db/raw.match", "any", "one of first, latest"),
    Bad(f"{SIGNALS}.from", "yesterday", "latest, earliest, a time such as '2026-01-31T12:00:00Z'"),
    Bad(f"{SIGNALS}.from", "2026-01-31T12:00:00", "latest, earliest, a time such as '2026-01-31T12:00:00Z'"),
    Bad(f"{SIGNALS}.from", -1, "latest, earliest, a time such as '2026-01-31T12:00:00Z'"),
    Bad(f"{SIGNALS}.from", True, "latest, earliest, a time such as '2026-01-31T12:00:00Z'"),
    Bad(f"{SIGNALS}.form", "latest", "the key 'from'"),
    Bad(f"{SIGNALS}.expiry", "soon", "a duration of at most 120 days"),
    Bad(f"{SIGNALS}.expiry", 0, "a duration of at most 120 days"),
    Bad(f"{SIGNALS}.expiry", "${hours}h", "a duration of at most 120 days"),
    Bad(f"{SIGNALS}.condition", "hours > 1", "parameters of the trigger, or of its signals"),
    Bad(f"{SIGNALS}.dedup_expr", "raw__day", "parameters of the trigger, or of its signals"),
    Bad(f"{SIGNALS}.dedup_expr", "params.getFromSignal('raw', 'day')", "one of its signals (db/raw, db/users)"),
    Bad(
        f"{SIGNALS}.params.where",
        {"type": "STRING", "value": "in ${region}"},
        "parameters of the trigger, or of its signals",
    ),
    Bad(f"{SIGNALS}.condition", "loud &&", "an expression in SEL"),
    Bad(f"{SIGNALS}.dedup_expr", "day +", "an expression in SEL"),
    Bad(f"{SIGNALS}.params.loud", {"type": "BOOLEAN"}, "the definition of a parameter (it needs exactly one of"),
    Bad(f"{SIGNALS}.definitions.db/raw.keys", {}, "only the keys join_keys, match, match_params"),
]


@pytest.mark.parametrize("bad", [*PROPERTIES, *WORKFLOW, *PARAMS, *STEPS, *TRIGGERS], ids=repr)
def test_a_wrong_value_is_refused_at_its_path_with_what_would_be_right(bad: Bad) -> None:
    wrong = changed(bad.place, bad.value)

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(wrong))

    [problem] = refused.value.problems
    assert problem.path == bad.path
    assert problem.expected.startswith(bad.expected)
    assert str(problem) == f"{problem.path}: Expected {problem.expected}, but found {problem.value}"
    assert len(problem.value) < 400


def test_all_problems_are_told_at_once() -> None:
    wrong = FULL
    for place, value in (
        ("properties.owner", 7),
        ("workflow.id", "a b"),
        ("workflow.timeout", "soon"),
        ("workflow.params.hours", {"type": "INT", "value": 1}),
        (f"{LOAD}.id", "1st"),
        (f"{LOAD}.timeout", 0),
        (f"{FOREACH}.concurrency", 0),
        (f"{WHILE}.condition", "tries <"),
        (f"{CRON}.cron", "never"),
        (f"{SIGNALS}.condition", "&&"),
    ):
        wrong = changed(place, value, wrong)

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(wrong))

    assert {problem.path for problem in refused.value.problems} == {
        "properties.owner",
        "workflow.id",
        "workflow.timeout",
        "workflow.params.hours",
        f"{LOAD}.id",
        f"{LOAD}.timeout",
        f"{FOREACH}.concurrency",
        f"{WHILE}.condition",
        f"{CRON}.cron",
        f"{SIGNALS}.condition",
    }
    assert all(str(problem) in str(refused.value) for problem in refused.value.problems)


def test_an_id_in_use_and_the_edge_to_the_lost_one_are_both_told() -> None:
    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(changed("workflow.steps[2].step.id", "load")))

    assert [problem.path for problem in refused.value.problems] == [
        "workflow.steps[2].step.id",
        f"{LOAD}.transition.successors.none",
    ]


def test_blocks_may_nest_ten_deep_and_no_deeper() -> None:
    def nested(depth: int) -> list[dict[str, object]]:
        if depth == 0:
            return [{"step": {"id": "work", "type": "NoOp"}}]
        loop = {"type": "MAP", "value": {f"i{depth}": {"type": "LONG_ARRAY", "value": [1]}}}
        return [{"foreach": {"id": f"loop{depth}", "params": {"loop_params": loop}, "steps": nested(depth - 1)}}]

    parse_push(text_of({"workflow": {"id": "deep", "steps": nested(9)}}))
    with pytest.raises(DefinitionRefused, match="at most 10 deep"):
        parse_push(text_of({"workflow": {"id": "deep", "steps": nested(10)}}))


def test_a_hostile_definition_gets_a_bounded_answer() -> None:
    steps = [{"step": {"id": "same", "type": "NoOp", "timeout": "never"}} for _ in range(300)]

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of({"workflow": {"id": "hostile", "steps": steps}}))

    assert len(refused.value.problems) == 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expected JSON"),
        ("{", "Expected JSON"),
        ("[]", "Expected an object, but found []"),
        ("null", "Expected an object, but found null"),
        (b"\xff", "Expected JSON"),
        ('{"workflow": {"id": "a", "id": "b"}}', "workflow.id: Expected each key once, but found it twice"),
        ('{"note": NaN}', "Expected JSON, but found NaN"),
        ('{"note": 1e99999}', "out of range"),
        ('{"note": ' + "9" * 1001 + "}", "a number of 1,001 digits"),
        ('{"note": "\\ud800"}', "note: Expected text in Unicode"),
        ('{"a": ' * 101 + "1" + "}" * 101, "nests at most 100 deep"),
        ("[" * 100_000, "nests at most 100 deep"),
        ('{"note": "' + "x" * 262_144 + '"}', "Expected at most 262,144 bytes, but found 262,156 bytes"),
    ],
)
def test_what_is_no_json_of_ours_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text)

    assert message in str(refused.value)
