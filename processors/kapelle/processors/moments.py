"""Which times there are: those that every table, record and date can hold."""

from typing import Final

TIME_MS_MIN: Final = -62_135_596_800_000  # the year 1
TIME_MS_MAX: Final = 253_402_300_799_999  # the year 9999
