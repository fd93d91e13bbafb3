"""A push that uses every kind of step and trigger, and a way to change one place of it."""

import copy
import json
import re
from typing import Any


class Gone:
    """In the place of a value: the key is not there."""

    def __repr__(self) -> str:
        return "GONE"


GONE = Gone()

FULL: dict[str, Any] = {
    "properties": {
        "owner": {"name": "ann", "team": "data"},
        "run_strategy": {"rule": "parallel", "workflow_concurrency": 7},
        "step_concurrency": 40,
        "alerting": {"emails": ["ann@example.com"]},
        "access_control": {"writers": ["bob"]},
        "description": "nightly",
        "tags": ["nightly"],
    },
    "is_active": False,
    "git_info": {"branch": "main", "commit": "abc"},
    "ticket": 12,
    "workflow": {
        "id": "etl",
        "name": "Extract and load",
        "description": "everything at once",
        "tags": ["daily", {"name": "team.data", "namespace": "platform", "cost": 1.10}],
        "timeout": "${hours}h 30min",
        "criticality": "high",
        "instance_step_concurrency": 10,
        "params": {
            "hours": {"type": "LONG", "value": 2},
            "day": {"type": "STRING", "expression": "RUN_DATE"},
            "rate": {"type": "DOUBLE", "value": 0.10, "validator": "value > 0.0"},
            "region": {"type": "STRING", "expression": "params.getFromSignal('db/raw', 'region')"},
            "place": {"type": "STRING", "value": "in ${region}"},
            "from": {"type": "STRING", "value": "$FROM_DATE"},
        },
        "time_triggers": [
            {"type": "CRON", "cron": "0 5 * * *", "timezone": "Europe/Berlin", "fuzzy_max_delay": "10 min"},
            {"type": "predefined", "expression": "@daily"},
        ],
        "signal_triggers": [
            {
                "definitions": {
                    "db/raw": {"match_params": {"region": {"value": "us", "operator": "="}}, "join_keys": ["day"]},
                    "db/users": {
                        "match_params": {"rows": {"value": 10, "operator": ">="}},
                        "join_keys": ["date"],
                        "match": "latest",
                    },
                },
                "from": "2026-01-31T12:00:00Z",
                "expiry": "2h",
                "params": {"loud": {"type": "BOOLEAN", "value": True}},
                "condition": "loud",
                "dedup_expr": "params.getFromSignal('db/raw', 'day')",
            }
        ],
        "steps": [
            {
                "step": {
                    "id": "load",
                    "name": "Load",
                    "type": "noop",
                    "params": {"n": {"type": "LONG", "value": 3}},
                    "transition": {"successors": {"fan": "n > 0", "none": "n == 0"}},
                    "failure_mode": "fail_immediately",
                    "tags": ["heavy"],
                    "timeout": 90,
                    "idempotent": False,
                    "retry_policy": {
                        "error_retry_limit": 5,
                        "platform_retry_limit": "${hours}",
                        "backoff": {"type": "fixed_backoff", "error_retry_backoff_in_secs": "1 min"},
                    },
                    "signal_dependencies": [
                        {
                            "name": "raw_${day}",
                            "match_params": {"rows": {"param": {"type": "LONG", "value": 5}, "operator": ">"}},
                            "match": "latest",
                        }
                    ],
                    "signal_outputs": [
                        {
                            "name": "loaded",
                            "params": {"n": {"type": "LONG", "expression": "n"}},
                            "payload": {"by": "us"},
                        }
                    ],
                }
            },
            {
                "foreach": {
                    "id": "fan",
                    "concurrency": 5,
                    "strict_ordering": True,
                    "params": {
                        "loop_params": {
                            "type": "MAP",
                            "value": {"i": {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, load__n, 1)"}},
                        }
                    },
                    "steps": [
                        {
                            "while": {
                                "id": "poll",
                                "condition": "tries < 3",
                                "params": {
                                    "loop_params": {"type": "MAP", "value": {"tries": {"type": "LONG", "value": 0}}}
                                },
                                "steps": [
                                    {
                                        "step": {
                                            "id": "ask",
                                            "type": "Sleep",
                                            "timeout": "${tries}s",
                                            "params": {"tries": {"type": "LONG", "expression": "tries + 1"}},
                                        }
                                    }
                                ],
                            }
                        }
                    ],
                    "transition": {"successors": {"child": "true"}, "predecessors": ["load"]},
                }
            },
            {"step": {"id": "none", "type": "spark.submit", "sub_type": "sql", "sub_type_version": "2"}},
            {
                "subworkflow": {
                    "id": "child",
                    "sync": False,
                    "explicit_params": True,
                    "params": {"subworkflow_id": {"type": "STRING", "value": "other"}},
                    "transition": {"successors": {"shaped": "true"}},
                }
            },
            {"template": {"id": "shaped", "sub_type": "report"}},
        ],
    },
}


def changed(path: str, value: Any, base: dict[str, Any] = FULL) -> dict[str, Any]:
    """The push with another value, or with none, at a path such as `workflow.steps[2].step.timeout`."""
    made = copy.deepcopy(base)
    *way, last = [int(key[1:-1]) if key[0] == "[" else key for key in re.findall(r"[^.\[\]]+|\[\d+\]", path)]
    place: Any = made
    for key in way:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return made


def text_of(push: Any) -> str:
    """The JSON of a push."""
    return json.dumps(push)
