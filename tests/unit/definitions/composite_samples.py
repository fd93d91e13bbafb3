"""A push whose loops, children and plain steps stand inside each other in many orders."""

from typing import Any

Json = dict[str, Any]


def loop_params(**values: Json) -> Json:
    return {"loop_params": {"type": "MAP", "value": values}}


def long(value: int) -> Json:
    return {"type": "LONG", "value": value}


def longs(*values: int) -> Json:
    return {"type": "LONG_ARRAY", "value": list(values)}


def computed(expression: str, kind: str = "LONG") -> Json:
    return {"type": kind, "expression": expression}


def text(value: str) -> Json:
    return {"type": "STRING", "value": value}


def leading(*names: str) -> Json:
    return {"successors": dict.fromkeys(names, "true")}


POLL: Json = {
    "while": {
        "id": "poll",
        "condition": "tries < limit && i > 0 && color == 'red'",
        "params": {**loop_params(tries=long(0)), "limit": long(3)},
        "steps": [
            {
                "step": {
                    "id": "ask",
                    "type": "NoOp",
                    "params": {"tries": computed("tries + 1"), "index": computed("loop_index")},
                    "transition": leading("deep"),
                }
            },
            {
                "foreach": {
                    "id": "deep",
                    "params": {
                        **loop_params(k=computed("Util.intsBetween(0, tries, 1)", "LONG_ARRAY")),
                        "asked": computed("ask__tries"),
                    },
                    "steps": [
                        {
                            "subworkflow": {
                                "id": "child",
                                "sync": False,
                                "explicit_params": True,
                                "params": {
                                    "subworkflow_id": text("other-${k}"),
                                    "subworkflow_version": text("latest"),
                                    "told": computed("asked + k + i"),
                                },
                            }
                        }
                    ],
                }
            },
        ],
    }
}
FAN: Json = {
    "foreach": {
        "id": "fan",
        "concurrency": 2,
        "strict_ordering": True,
        "params": {
            "color": text("red"),
            **loop_params(i=longs(1, 2, 3), j=computed("Util.intsBetween(0, load__n, 1)", "LONG_ARRAY")),
        },
        "transition": leading("report"),
        "steps": [
            {
                "step": {
                    "id": "first",
                    "type": "NoOp",
                    "params": {
                        "part": text("${color}-${i}-${j}"),
                        "amount": computed("i * rows"),
                        "list": longs(1),
                    },
                    "transition": leading("poll", "sub"),
                }
            },
            POLL,
            {
                "subworkflow": {
                    "id": "sub",
                    "params": {"subworkflow_id": text("other"), "part": computed("first__part", "STRING")},
                    "transition": leading("after"),
                }
            },
            {
                "step": {
                    "id": "after",
                    "type": "NoOp",
                    "params": {"got": computed("params.getFromSubworkflow('sub', 'job', 'x')", "STRING")},
                }
            },
        ],
    }
}
NESTED: Json = {
    "properties": {"owner": "ann"},
    "workflow": {
        "id": "nested",
        "params": {"rows": long(100)},
        "steps": [
            {"step": {"id": "load", "type": "NoOp", "params": {"n": long(3)}, "transition": leading("fan")}},
            FAN,
            {
                "step": {
                    "id": "report",
                    "type": "NoOp",
                    "params": {"all": computed("params.getFromForeach('fan', 'first', 'amount')", "LONG_ARRAY")},
                    "transition": leading("again"),
                }
            },
            {
                "while": {
                    "id": "again",
                    "condition": "i < 2",
                    "params": loop_params(i=long(0)),
                    "steps": [{"step": {"id": "count", "type": "NoOp", "params": {"i": computed("i + 1")}}}],
                }
            },
        ],
    },
}


def nested(depth: int, inside: list[Json]) -> list[Json]:
    """Steps inside that many loops, foreach and while by turns."""
    if depth == 0:
        return inside
    more: Json = {"params": loop_params(**{f"i{depth}": longs(1)})}
    if depth % 2:
        more = {"condition": f"i{depth} < 1", "params": loop_params(**{f"i{depth}": long(0)})}
    return [{"while" if depth % 2 else "foreach": {"id": f"loop{depth}", "steps": nested(depth - 1, inside), **more}}]
