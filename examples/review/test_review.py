"""The review loop, without a broker."""

from examples.review.steps import worker
from examples.review.workflow import ROUNDS_MAX, review_loop
from kapelle.testing import Engine, assert_not_run, assert_run, assert_step
from kapelle.worker import Worker


def test_a_text_is_corrected_until_it_is_good(engine: Engine) -> None:
    run = engine.start(engine.push(review_loop))

    engine.run_worker(worker)

    assert_run(run, "SUCCEEDED")
    assert_step(run, "publish", "SUCCEEDED")
    assert run.params("review")["round"] == 3
    assert_not_run(run, "give_up")


def test_a_reviewer_who_is_never_content_ends_the_loop(engine: Engine) -> None:
    strict = Worker()
    for kind in ("write_draft", "fix_text"):
        strict.add(kind, worker.steps[kind].function)

    @strict.step("review_text")
    def review_text() -> dict[str, bool | str]:
        return {"good": False, "remark": "2 words are missing"}

    run = engine.start(engine.push(review_loop))

    engine.run_worker(strict)

    assert_step(run, "give_up", "SUCCEEDED")
    assert run.params("review")["round"] == ROUNDS_MAX
