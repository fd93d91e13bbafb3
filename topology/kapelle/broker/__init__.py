"""The parts that all clients of a broker share: meanings of errors, reading a small topic, leaving a group."""

from kapelle.broker.departure import leave
from kapelle.broker.meanings import (
    has_no_leader,
    is_away,
    is_bad_setting,
    is_end,
    is_fenced,
    is_final,
    is_missing,
    is_not_yet_fetched,
    is_out_of_range,
    is_producer_lost,
    is_refused,
    is_repaired_by_client,
    is_silent,
    is_timeout,
    lacks_share_groups,
    no_leader,
    says_all_are_down,
    seeks_coordinator,
)
from kapelle.broker.topic_content import read_to_end

__all__ = [
    "has_no_leader",
    "is_away",
    "is_bad_setting",
    "is_end",
    "is_fenced",
    "is_final",
    "is_missing",
    "is_not_yet_fetched",
    "is_out_of_range",
    "is_producer_lost",
    "is_refused",
    "is_repaired_by_client",
    "is_silent",
    "is_timeout",
    "lacks_share_groups",
    "leave",
    "no_leader",
    "read_to_end",
    "says_all_are_down",
    "seeks_coordinator",
]
