"""How routes name the shapes of their answers. The document puts a schema in the place of each (`document.py`)."""

from typing import Final, TypeAlias

JSON: Final = "application/json"

Responses: TypeAlias = dict[int | str, dict[str, object]]  # by status, as FastAPI takes them


class Shape(dict[str, object]):
    """A schema that is not made yet: one of these types. FastAPI keeps it as it is, and makes no validator of it."""

    def __init__(self, *kinds: object) -> None:
        super().__init__()
        self.kinds = kinds


def answer(*kinds: object, description: str, media_type: str = JSON) -> dict[str, object]:
    """An answer that has one of these types."""
    return {"description": description, "content": {media_type: {"schema": Shape(*kinds)}}}


def ok(*kinds: object, status: int = 200, description: str = "The answer.") -> Responses:
    """The answer of a route that has succeeded."""
    return {status: answer(*kinds, description=description)}
