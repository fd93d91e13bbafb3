"""Why another implementation says something else, in a word."""

from typing import Final

REASONS: Final = {
    "gap-lost": "A time that the clock skips does not fire there. Here it fires when the gap ends.",
    "gap-loses-more": "After a gap that is not an hour, times that exist do not fire there either.",
    "fold-twice": "A time that the clock shows twice fires twice there. Here only times of every hour do.",
    "fold-last": "A time that the clock shows twice fires at the last there. Here at the first, or at both.",
    "wrap-first-only": "A range that wraps has only its first value there. Quartz has all of them, as here.",
    "last-dropped": "L and LW in a list mean nothing there. Quartz adds them to the list, as here.",
    "date-of-no-month": "A working day near a date that a month does not have fails there. Quartz passes it over.",
    "last-sunday": "The working day nearest to a last Sunday is that Sunday there. Quartz takes the Friday.",
    "list-of-special": "Lists of special days are refused or read in part there. Here each of them counts.",
    "not-read": "The form is not known there.",
    "lenient": "What is refused here is read there, or it fails in another way.",
    "sunday-7": "A step from a day of the week does not reach 7, Sunday, there. In cron-utils it does, as here.",
    "year-limit": "The last year there is 2099, or a hundred years from now, or there is none. Here it is 2199.",
}
