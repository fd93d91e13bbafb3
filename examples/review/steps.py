"""The steps of the review: write a draft, check it, correct it, publish it."""

from kapelle.worker import Context, Worker

WORDS_MIN = 8

worker = Worker()


@worker.step("write_draft")
def write_draft(topic: str) -> dict[str, str]:
    return {"text": f"All about {topic}."}


@worker.step("review_text")
def review_text(text: str, context: Context) -> dict[str, bool | str]:
    words = len(text.split())
    context.log(f"{words} words")
    if words >= WORDS_MIN:
        return {"good": True, "remark": ""}
    return {"good": False, "remark": f"{WORDS_MIN - words} words are missing"}


@worker.step("fix_text")
async def fix_text(text: str, remark: str) -> dict[str, str]:
    return {"text": f"{text} And {remark.split(maxsplit=1)[0]} more."}


@worker.step("publish_text")
def publish_text(text: str) -> dict[str, int]:
    return {"length": len(text)}
