"""The kit of all relays: group reading, patience, publishing, dead letters, history, and counts.

A relay reads records as one member of a consumer group, hands them to somebody else, and commits when they are safe:

    group.py, history.py    read, at least once
    patience.py             wait for others, until told to stop
    publication.py          publish to a journal, with an answer for each record
    letters.py              put a record aside
    metrics.py              count, log now and then, and expose the counts
"""
