"""A workflow, built in Python, that reviews and corrects a text until it is good. Run as a program, it pushes it.

python workflow.py http://127.0.0.1:8080
"""

import sys

from kapelle.client import Client, Workflow, expression

ROUNDS_MAX = 5

review_loop = Workflow("review-loop", owner="ann", params={"topic": "clocks"})
draft = review_loop.step("draft", "write_draft", params={"topic": expression("topic"), "text": ""})
review = review_loop.step(
    "review",
    "review_text",
    params={
        "text": expression("x = params.get('fix__text'); return x == null ? draft__text : x;"),
        "round": expression("x = params.get('fix__round'); return x == null ? 1 : x + 1;", "LONG"),
        "good": False,
        "remark": "",
    },
)
fix = review_loop.step(
    "fix",
    "fix_text",
    params={
        "remark": expression("review__remark"),
        "round": expression("review__round", "LONG"),
        "text": expression("review__text"),
    },
)
publish = review_loop.step("publish", "publish_text", params={"text": expression("review__text"), "length": 0})
give_up = review_loop.step("give_up", "NoOp")

draft >> review
review.when("good", publish)
review.when(f"!good && round >= {ROUNDS_MAX}", give_up)
review.when(f"!good && round < {ROUNDS_MAX}", fix) >> review


if __name__ == "__main__":
    with Client(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080") as kapelle:
        pushed = kapelle.workflows.push(review_loop)
        print(f"{pushed.workflow_id} version {pushed.workflow_version_id}")
