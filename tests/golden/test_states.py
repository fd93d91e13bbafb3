"""The page of the states is what the tables say."""

from tests.golden.states import PAGE, page


def test_the_page_of_the_states_is_drawn_from_the_tables() -> None:
    assert PAGE.read_text() == page(), "a table of states has changed: python -m tests.golden.states"
