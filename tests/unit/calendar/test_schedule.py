"""A schedule is known by what it says, and the delay of a tick by what it belongs to."""

from kapelle.processors.calendar import Schedule, ScheduleType, fuzz_ms, normalised, schedule_of

DAILY = Schedule(ScheduleType.CRON, "0 5 * * *", "Europe/Berlin")


def test_a_schedule_is_read_as_it_was_written() -> None:
    interval = Schedule(ScheduleType.INTERVAL, interval_ms=5_400_000, anchor_ms=7, start_ms=8)

    assert [schedule_of(schedule.json()) for schedule in (DAILY, interval)] == [DAILY, interval]


def test_the_text_of_a_schedule_has_sorted_keys_and_no_defaults() -> None:
    assert DAILY.json() == '{"cron":"0 5 * * *","timezone":"Europe/Berlin","type":"CRON"}'


def test_the_id_of_a_schedule_never_changes() -> None:
    assert DAILY.id == "6f923b6de514b3d5"


def test_schedules_that_name_other_times_have_other_ids() -> None:
    others = [Schedule(ScheduleType.CRON, "0 5 * * *"), Schedule(ScheduleType.CRON, "0 6 * * *", "Europe/Berlin")]

    assert len({DAILY.id, *(other.id for other in others)}) == 3


def test_a_cron_text_is_normalised_to_upper_case_and_single_blanks() -> None:
    assert normalised(" 0  5 * * mon-Fri\t") == "0 5 * * MON-FRI"


def test_the_delay_of_a_tick_is_always_the_same() -> None:
    assert [fuzz_ms("etl", DAILY.id, at_ms, 600_000) for at_ms in (0, 0, 86_400_000)] == [537000, 537000, 466000]


def test_delays_are_whole_seconds_from_zero_to_below_the_maximum() -> None:
    found = {fuzz_ms("etl", "t", at_ms, 10_000) for at_ms in range(500)}

    assert found == {seconds * 1000 for seconds in range(10)}


def test_workflows_and_triggers_have_delays_of_their_own() -> None:
    found = {fuzz_ms(*names, 0, 86_400_000) for names in (("a", "t"), ("b", "t"), ("a", "u"), ("a:", "t"), ("a", ":t"))}

    assert len(found) == 5


def test_a_maximum_of_at_most_a_second_is_no_delay() -> None:
    assert [fuzz_ms("etl", "t", 5, max_ms) for max_ms in (0, 1, 1000)] == [0, 0, 0]
