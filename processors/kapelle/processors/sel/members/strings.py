"""Members of String."""

from collections.abc import Callable, Iterator, Sequence

from kapelle.processors.sel import regex
from kapelle.processors.sel.errors import BadValue, LimitExceeded, TypeMismatch
from kapelle.processors.sel.formatting import formatted
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import ANY, LONG, STRING, Table, member, variadic
from kapelle.processors.sel.regex import Match
from kapelle.processors.sel.values import Array, StringArray, kind_of, text_of

BLOCK_CHARS = 1024
BLANKS = "".join(map(chr, range(33)))


def _split(frame: Frame, text: str, pattern: str, limit: int = 0) -> StringArray:
    """Java's split: no limit drops empty strings at the end, a positive one bounds the parts, a negative keeps all."""
    frame.scan(len(text))
    parts: list[str] = []
    start = 0
    for begin, end in _separators(frame, pattern, text):
        if limit > 0 and len(parts) == limit - 1:
            break
        if end == 0 and begin == 0:
            continue  # an empty match at the beginning makes no empty string
        if len(parts) >= frame.limits.array_length:
            raise LimitExceeded("array_length", frame.limits.array_length)
        frame.text(begin - start, of=(text,))
        parts.append(text[start:begin])
        start = end
    frame.text(len(text) - start, of=(text,))
    parts.append(text[start:])
    if limit == 0 and start > 0:
        while parts and not parts[-1]:
            parts.pop()
    frame.array(len(parts))
    return StringArray(parts)


def _separators(frame: Frame, pattern: str, text: str) -> Iterator[tuple[int, int]]:
    literal = regex.literal_of(pattern)
    if not literal:
        for match in regex.matches(frame, pattern, text):
            # Between the last character and the end there is nothing to split.
            if match.start() != match.end() or match.start() < len(text):
                yield match.span()
        return
    at = text.find(literal)
    while at >= 0:
        yield at, at + len(literal)
        at = text.find(literal, at + len(literal))


def _replace_all(frame: Frame, text: str, pattern: str, replacement: str) -> str:
    frame.work(len(replacement) // 2)  # it is read character by character
    out: list[str] = []
    at = 0
    pieces: list[str | int] | None = None
    for match in regex.matches(frame, pattern, text):
        if pieces is None:
            pieces = _replacement(replacement, match)
        made = text[at : match.start()]
        frame.text(len(made), of=(text,))
        out.append(made)
        for piece in pieces:
            part = piece if isinstance(piece, str) else match.group(piece) or ""
            frame.text(len(part), of=(part,))
            out.append(part)
        at = match.end()
    out.append(text[at:])
    frame.text(sum(len(part) for part in out), of=(text, replacement))
    return "".join(out)


def _replacement(text: str, match: Match) -> list[str | int]:
    """Java's replacement syntax: `$1` and `${name}` are groups, a backslash makes the next character literal."""
    groups = len(match.groups())
    pieces: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 == len(text):
                raise BadValue("Expected a character after the last '\\' of the replacement")
            pieces.append(text[at + 1])
            at += 2
        elif char == "$":
            number, at = _group(text, at + 1, groups, match)
            pieces.append(number)
        else:
            end = at + 1
            while end < len(text) and text[end] not in "\\$":
                end += 1
            pieces.append(text[at:end])
            at = end
    return pieces


def _group(text: str, at: int, groups: int, match: Match) -> tuple[int, int]:
    if text[at : at + 1] == "{":
        end = text.find("}", at)
        name = text[at + 1 : end] if end >= 0 else ""
        names = match.re.groupindex
        if name not in names:
            raise BadValue(f"Expected a named group of the pattern, but found {name[:40]!r}")
        return int(names[name]), end + 1
    if text[at : at + 1] not in tuple("0123456789"):
        raise BadValue("Expected a group's number after '$' in the replacement", hint="a literal $ is written \\\\$")
    number = int(text[at])
    at += 1
    while at < len(text) and text[at] in "0123456789" and number * 10 + int(text[at]) <= groups:
        number = number * 10 + int(text[at])
        at += 1
    if number > groups:
        raise BadValue(f"Expected a group from 0 to {groups} in the replacement, but found {number}")
    return number, at


def _replace(frame: Frame, text: str, old: str, new: str) -> str:
    _search_cost(frame, text, old)
    count = text.count(old)
    frame.text(len(text) + count * (len(new) - len(old)), of=(text, new))
    return text.replace(old, new)


def _search_cost(frame: Frame, text: str, part: str) -> None:
    # Python's search is linear for long needles and at worst the product for short ones.
    frame.scan(len(text) * (1 + min(len(part), 100) // 8))


def _cased(upper: bool) -> Callable[[Frame, str], str]:
    def run(frame: Frame, text: str) -> str:
        frame.scan(len(text))
        made = text.upper() if upper else text.lower()  # at most three times as long
        frame.text(len(made), of=(text,))
        return made

    return run


def _substring(frame: Frame, text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise BadValue(f"Expected 0 <= start <= end <= {len(text)} in substring(), but found {start} and {stop}")
    frame.text(stop - start, of=(text,))
    return text[start:stop]


def _index_of(frame: Frame, text: str, part: str) -> int:
    _search_cost(frame, text, part)
    return text.find(part)


def _last_index_of(frame: Frame, text: str, part: str) -> int:
    _search_cost(frame, text, part)
    return text.rfind(part)


def _contains(frame: Frame, text: str, part: str) -> bool:
    _search_cost(frame, text, part)
    return part in text


def _compare(frame: Frame, text: str, other: str) -> int:
    """The difference of the first two characters that differ, else of the lengths."""
    frame.scan(min(len(text), len(other)))
    at, shorter = 0, min(len(text), len(other))
    # Whole blocks are compared at once: only the one that differs is looked at character by character.
    while at < shorter and text[at : at + BLOCK_CHARS] == other[at : at + BLOCK_CHARS]:
        at += BLOCK_CHARS
    for place in range(at, min(at + BLOCK_CHARS, shorter)):
        if text[place] != other[place]:
            return ord(text[place]) - ord(other[place])
    return len(text) - len(other)


def _equals(frame: Frame, text: str, other: Value) -> bool:
    frame.scan(len(text))
    return bool(other.__class__ is str and other == text)


def _trim(frame: Frame, text: str) -> str:
    frame.text(len(text), of=(text,))
    return text.strip(BLANKS)


ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"'})


def _escape(frame: Frame, text: Value, other: str | None = None) -> str:
    """With Java's escapes; the single quote stays as it is."""
    source = text if other is None else other
    if source.__class__ is not str:
        raise TypeMismatch("Expected STRING as argument 1 of escape(), but found nothing")
    frame.text(2 * len(source), of=(source,))
    return str(source.translate(ESCAPES))


def _value_of(frame: Frame, _: Value, value: Value) -> str:
    text = text_of(frame, value)
    frame.text(len(text))
    return text


def _format(frame: Frame, _: Value, *args: Value) -> str:
    if not args or args[0].__class__ is not str:
        raise TypeMismatch("Expected STRING as argument 1 of format()")
    rest = list(args[1]) if len(args) == 2 and isinstance(args[1], Array) else list(args[1:])
    frame.work(len(rest) // 16)
    return formatted(frame, args[0], rest)


def _join(frame: Frame, _: Value, *args: Value) -> str:
    if not args or args[0].__class__ is not str:
        raise TypeMismatch("Expected STRING as argument 1 of join()")
    rest: Sequence[Value] = args[1] if len(args) == 2 and isinstance(args[1], Array) else args[1:]
    frame.work(len(rest))
    parts: list[str] = []
    for number, part in enumerate(rest, start=2):
        if part is not None and part.__class__ is not str:
            raise TypeMismatch(f"Expected STRING as argument {number} of join(), but found {kind_of(part)}")
        parts.append("null" if part is None else part)
    frame.text(sum(map(len, parts)) + len(args[0]) * max(0, len(parts) - 1), of=(args[0], *parts))
    return str(args[0].join(parts))


def _new(frame: Frame, value: Value = "") -> str:
    return _value_of(frame, None, value)


METHODS: Table = {
    "split": member(_split, (STRING,), (STRING, LONG)),
    "toUpperCase": member(_cased(True)),
    "toLowerCase": member(_cased(False)),
    "replaceAll": member(_replace_all, (STRING, STRING)),
    "replace": member(_replace, (STRING, STRING)),
    "startsWith": member(lambda _, s, t: s.startswith(t), (STRING,)),
    "endsWith": member(lambda _, s, t: s.endswith(t), (STRING,)),
    "contains": member(_contains, (STRING,)),
    "substring": member(_substring, (LONG,), (LONG, LONG)),
    "indexOf": member(_index_of, (STRING,)),
    "lastIndexOf": member(_last_index_of, (STRING,)),
    "length": member(lambda _, s: len(s)),
    "isEmpty": member(lambda _, s: not s),
    "equals": member(_equals, (ANY,)),
    "compareTo": member(_compare, (STRING,)),
    "trim": member(_trim),
    "escape": member(_escape, (), (STRING,)),
    "toString": member(lambda _, s: s),
}
STATIC: Table = {
    "valueOf": member(_value_of, (ANY,)),
    "format": variadic(_format),
    "join": variadic(_join),
    "escape": member(_escape, (STRING,)),
}
NEW: Table = {"String": member(_new, (), (frozenset({int, str}),))}
