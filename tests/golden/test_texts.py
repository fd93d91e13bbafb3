"""The texts of the command line and of the HTTP API are those of the golden file."""

from tests.support import texts


def test_the_texts_for_users_are_those_of_the_golden_file() -> None:
    assert texts.texts() == texts.GOLDEN.read_text(), (
        f"The texts of the command line or of the HTTP API have changed: run `{texts.REGENERATE}`, and read the "
        "difference as somebody would who does not know the project"
    )
