"""`String.format` with Java's conversions, each checked and counted before its text is made."""

import math
import re

from kapelle.processors.sel.errors import BadValue, TypeMismatch
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.values import kind_of, text_of

WIDTH_MAX = 1000
SPECIFIERS_MAX = 1000
CONVERSION_COST = 5  # visits
FLAGS = {"s": "-", "b": "-", "d": "-+ 0,(", "x": "-#0", "o": "-#0", "f": "-+ 0,(", "e": "-+ 0(", "g": "-+ 0,("}
_SPECIFIER = re.compile(r"%(?:(\d{1,3})\$)?([-#+ 0,(]*)(\d{1,5})?(?:\.(\d{1,5}))?([a-zA-Z%])")


def formatted(frame: Frame, template: str, args: list[Value]) -> str:
    """The template with its specifiers replaced."""
    frame.scan(len(template))
    out: list[str] = []
    at = following = 0
    count = 0
    while (sign := template.find("%", at)) >= 0:
        match = _SPECIFIER.match(template, sign)
        if match is None:
            raise BadValue(f"Expected a conversion such as %s or %5d, but found {template[sign : sign + 10]!r}")
        count += 1
        if count > SPECIFIERS_MAX:
            raise BadValue(f"Expected at most {SPECIFIERS_MAX} conversions in a format")
        frame.work(CONVERSION_COST)
        _append(frame, out, template[at:sign])
        if match[5] in "n%":
            _append(frame, out, "\n" if match[5] == "n" else "%")
        else:
            number = int(match[1]) - 1 if match[1] else following
            following += 0 if match[1] else 1
            if not 0 <= number < len(args):
                raise BadValue(f"Expected an argument for {match[0]!r}, but there are only {len(args)}")
            _append(frame, out, _converted(frame, match, args[number]))
        at = match.end()
    _append(frame, out, template[at:])
    frame.text(sum(len(part) for part in out))
    return "".join(out)


def _append(frame: Frame, out: list[str], text: str) -> None:
    frame.text(len(text), of=(text,))
    out.append(text)


def _converted(frame: Frame, match: re.Match[str], value: Value) -> str:
    flags, width, precision, letter = match[2], int(match[3] or 0), match[4], match[5]
    if width > WIDTH_MAX or int(precision or 0) > WIDTH_MAX:
        raise BadValue(f"Expected a width of at most {WIDTH_MAX}, but found {match[0]!r}")
    allowed = FLAGS.get(letter.lower(), "")
    if wrong := set(flags) - set(allowed):
        raise BadValue(f"Expected only the flags {allowed!r} with %{letter}, but found {''.join(sorted(wrong))!r}")
    digits = int(precision) if precision else None
    upper = letter.isupper()
    kind = letter.lower()
    if value is None and kind != "b":
        text = "null"
    elif kind == "s":
        text = text_of(frame, value)[:digits]
    elif kind == "b":
        text = ("true" if value else "false") if value.__class__ is bool else str(value is not None).lower()
    elif kind in "dxo":
        text = _integer(match[0], kind, value, flags)
    elif kind in "feg":
        text = _decimal(match[0], kind, value, (flags, digits))
    else:
        raise BadValue(f"Expected one of the conversions s d x o f e g b n %, but found {match[0]!r}")
    if upper:
        text = text.upper()
    if "0" in flags and kind in "dxofeg" and len(text) < width:
        sign = text[0] if text[:1] in ("+", "-", " ") else ""
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _signed(text: str, flags: str, *, negative: bool) -> str:
    if negative:
        return f"({text})" if "(" in flags else f"-{text}"
    return f"+{text}" if "+" in flags else f" {text}" if " " in flags else text


def _integer(written: str, kind: str, value: Value, flags: str) -> str:
    if value.__class__ is not int:
        raise TypeMismatch(f"Expected LONG for {written!r}, but found {kind_of(value)}")
    if kind != "d":
        # A negative number is shown as its 64 bits.
        return format(value & (2**64 - 1) if value < 0 else value, f"{'#' if '#' in flags else ''}{kind}")
    return _signed(format(abs(value), "," if "," in flags else ""), flags, negative=value < 0)


def _decimal(written: str, kind: str, value: Value, style: tuple[str, int | None]) -> str:
    if value.__class__ is not float:
        raise TypeMismatch(
            f"Expected DOUBLE for {written!r}, but found {kind_of(value)}", hint="multiply by 1.0 to get one"
        )
    flags, digits = style
    precision = 6 if digits is None else digits
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else _signed("Infinity", flags, negative=value < 0)
    text = format(abs(value), f"{',' if ',' in flags else ''}.{precision}{kind}")
    negative = str(value).startswith("-")
    return _signed(text, flags, negative=negative)
