"""What streams carry."""

from kapelle.processors.messages import Foreign
from kapelle.processors.streams import Stream
from kapelle.schemas import contracts as c


def test_foreign_records_are_not_among_the_types_of_a_stream_that_are_ours() -> None:
    stream = Stream("signals", (c.AnnounceSignal, Foreign))

    assert stream.ours == (c.AnnounceSignal,)
