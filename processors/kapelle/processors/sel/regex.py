"""Regular expressions of users, on RE2: matching takes time linear in the text whatever the pattern.

Linear is not free: a replacement searches once per match, and a large pattern costs more per character. Both are
counted before they are spent. Look-around, back-references and possessive quantifiers do not exist in RE2; they are
errors.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol

import re2

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.limits import Frame

PATTERN_CHARS_MAX = 1000
PROGRAM_BYTES_MAX = 256 << 10
MATCH_COST = 80  # visits: what finding and keeping one match takes beside the searching
STEPS_PER_VISIT = 32
STEPS_PER_VISIT_SEARCHING = 1024
META = frozenset("\\.[]{}()*+-?^$|")
# Patterns that never look past the end of their match, so that all matches together are one pass over the text.
_ONE_PASS = re2.compile(r"(?:\\?[^\\\[\](){}|*+?.^$]|\\[dDsSwW.|*+?^$(){}\[\]\\]|\[[^\\\[\]]+\])[+]?")


class Pattern(Protocol):
    """What is used of a compiled pattern of RE2, which has no types."""

    @property
    def programsize(self) -> int: ...

    @property
    def groupindex(self) -> Mapping[str, int]: ...

    def finditer(self, text: str) -> "Iterator[Match]": ...


class Match(Protocol):
    """What is used of a match of RE2."""

    @property
    def re(self) -> Pattern: ...

    def start(self) -> int: ...

    def end(self) -> int: ...

    def span(self) -> tuple[int, int]: ...

    def group(self, number: int) -> str | None: ...

    def groups(self) -> tuple[str | None, ...]: ...


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> Pattern:
    options = re2.Options()
    options.max_mem = PROGRAM_BYTES_MAX
    options.log_errors = False
    made: Pattern = re2.compile(pattern, options)
    return made


def compiled(frame: Frame, pattern: str) -> Pattern:
    """The compiled pattern. A pattern that is refused has not cost more than one of the allowed length can."""
    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadValue(f"Expected a regular expression of at most {PATTERN_CHARS_MAX} characters")
    frame.work(len(pattern) * 4)
    try:
        made = _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "malformed"
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        hint = "look-around, back-references and possessive quantifiers are not supported" if "(?" in pattern else ""
        raise BadValue(f"Expected a regular expression, but found {pattern[:60]!r}: {reason}", hint=hint) from None
    except UnicodeEncodeError:
        raise BadValue("Expected a regular expression in valid Unicode, but found an unpaired surrogate") from None
    frame.work(made.programsize * 2)
    return made


def matches(frame: Frame, pattern: str, text: str) -> Iterator[Match]:
    """Every match in turn, each counted before it is looked for."""
    made = compiled(frame, pattern)
    size = made.programsize
    one_pass = _ONE_PASS.fullmatch(pattern) is not None
    frame.work(len(text) * size // STEPS_PER_VISIT + 1)
    try:
        for match in made.finditer(text):
            yield match
            rest = 0 if one_pass else (len(text) - match.end()) * size // STEPS_PER_VISIT_SEARCHING
            frame.work(rest + MATCH_COST)
    except UnicodeEncodeError:
        raise BadValue("Expected a text in valid Unicode, but found an unpaired surrogate") from None


def literal_of(pattern: str) -> str | None:
    """The text that the pattern stands for if it has no operators: most patterns of `split` are one character."""
    if not META & set(pattern):
        return pattern
    if len(pattern) == 2 and pattern[0] == "\\" and not pattern[1].isalnum():
        return pattern[1]
    return None
