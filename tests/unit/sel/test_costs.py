"""Every member spends visits in proportion to the strings that it is given: none works for free."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kapelle.processors.sel import Extension, LimitExceeded, Limits, Sel, SelError, StringArray, seeded
from kapelle.processors.sel.joda.formatter import Formatter, formatter_of
from kapelle.processors.sel.joda.moment import DateTime, Days, Property
from kapelle.processors.sel.joda.zone import UTC, Zone
from kapelle.processors.sel.limits import CHARS_PER_VISIT, Frame
from kapelle.processors.sel.members.member import Accept, Member, construct, invoke
from kapelle.processors.sel.members.params import EXTENSION_FUNCTIONS, PARAMS, Params
from kapelle.processors.sel.members.registry import METHODS, NEW, STATIC
from kapelle.processors.sel.operators import BINARY
from kapelle.processors.sel.types import Uuid
from kapelle.processors.sel.values import ARRAYS, text_of

LENGTH = 100_000
LEAST = LENGTH // CHARS_PER_VISIT // 2
PLENTY = 10**12
# What gives an answer without a look at the characters of its target.
LOOKS_AT_LENGTH_ALONE = {"length", "isEmpty", "toString", "substring"}
# What reads no more of its target than its argument is long.
READS_AS_MUCH_AS_ITS_ARGUMENT = {"startsWith", "endsWith", "compareTo"}
SAMPLES: dict[type, Any] = {
    str: "abc",
    int: 1,
    float: 1.5,
    bool: True,
    dict: {"abc": "d"},
    DateTime: DateTime(0),
    Zone: UTC,
    Formatter: formatter_of("yyyyMMdd"),
    Property: Property(DateTime(0), "dayOfMonth"),
    Days: Days(1),
    Uuid: Uuid("0"),
    Params: PARAMS,
    **{kind: kind([]) for kind in ARRAYS.values()},
}


class Asked(msgspec.Struct, frozen=True):
    """One argument of one member that may be a string."""

    owner: str
    name: str
    member: Member
    target: Any
    accepts: tuple[Accept, ...]
    place: int

    def spent(self, text: str) -> int:
        """The visits of a call with that text in its place."""
        args = [text if at == self.place else _sample(accept) for at, accept in enumerate(self.accepts)]
        if self.owner == "new":
            return spent_by(lambda frame: construct(self.member, self.name, frame, args))
        return spent_by(lambda frame: invoke(self.member, self.name, frame, self.target, args))

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}/{len(self.accepts)}[{self.place}]"


def _sample(accept: Accept) -> Any:
    return "abc" if accept is None else SAMPLES[min(accept, key=lambda kind: (kind is not str, kind.__name__))]


def spent_by(call: Any) -> int:
    frame = Frame({}, seeded("costs", 0, Extension()), Limits(), PLENTY, PLENTY, [])
    try:
        call(frame)
    except SelError as error:
        assert not isinstance(error, LimitExceeded)  # noqa: PT017 - any other refusal is an answer too
    return PLENTY - frame.visits


def members() -> Iterator[tuple[str, str, Member, Any]]:
    for kind, table in METHODS.items():
        yield from ((kind.__name__, name, member, SAMPLES[kind]) for name, member in table.items())
    for owner, table in STATIC.items():
        yield from ((owner, name, member, None) for name, member in table.items())
    yield from (("new", name, member, None) for name, member in NEW.items())


def signatures(name: str, member: Member) -> Iterator[tuple[Accept, ...]]:
    if not member.variadic:
        yield from member.accepts.values()
    elif name in EXTENSION_FUNCTIONS:
        yield from EXTENSION_FUNCTIONS[name].values()
    else:
        yield (frozenset({str}), None, None)


def asked() -> list[Asked]:
    return [
        Asked(owner, name, member, target, accepts, place)
        for owner, name, member, target in members()
        for accepts in signatures(name, member)
        for place, accept in enumerate(accepts)
        if accept is None or str in accept
    ]


ASKED = asked()


def test_the_registry_is_walked_as_a_whole() -> None:
    assert {str(one) for one in ASKED} >= {
        "str.startsWith/1[0]",
        "str.endsWith/1[0]",
        "dict.get/1[0]",
        "dict.containsKey/1[0]",
        "dict.getOrDefault/2[0]",
        "new.Boolean/1[0]",
        "Params.get/1[0]",
        "String.join/3[2]",
        "Util.timeoutForDateTimeDeadline/2[1]",
    }


@pytest.mark.parametrize("one", ASKED, ids=str)
def test_a_member_spends_in_proportion_to_a_long_string_that_it_is_given(one: Asked) -> None:
    assert one.spent("x" * LENGTH) - one.spent("x") >= LEAST


@pytest.mark.parametrize("name", sorted(METHODS[str].keys() - LOOKS_AT_LENGTH_ALONE))
def test_a_member_of_a_long_string_spends_in_proportion_to_what_it_reads(name: str) -> None:
    member = METHODS[str][name]
    text = "x" * LENGTH if name in READS_AS_MUCH_AS_ITS_ARGUMENT else "abc"
    accepts = min(member.accepts.values(), key=len)
    args = [text if accept is None or str in accept else _sample(accept) for accept in accepts]

    assert spent_by(lambda frame: invoke(member, name, frame, "x" * LENGTH, args)) >= LEAST


@pytest.mark.parametrize("sign", ["+", "==", "!="])
def test_an_operator_on_long_strings_spends_in_proportion_to_them(sign: str) -> None:
    one, two = "x" * LENGTH, "".join("x" for _ in range(LENGTH))

    assert spent_by(lambda frame: BINARY[sign](frame, one, two)) >= LEAST


def test_a_map_or_an_array_as_text_spends_in_proportion_to_its_keys_and_items() -> None:
    assert spent_by(lambda frame: text_of(frame, {"x" * LENGTH: 1})) >= LEAST
    assert spent_by(lambda frame: text_of(frame, {str(n): None for n in range(LENGTH // 100)})) >= LENGTH // 100
    assert spent_by(lambda frame: text_of(frame, StringArray(["x" * LENGTH]))) >= LEAST


@pytest.mark.parametrize(
    "text",
    [
        "String.join('', a)",
        "String.format('%s', a)",
        "String.valueOf(a)",
        "Util.toJson(a)",
        "a",
    ],
)
def test_what_walks_an_array_spends_in_proportion_to_its_length(text: str) -> None:
    inputs = {"a": StringArray([""] * 16_000)}
    least = 1_000

    with pytest.raises(LimitExceeded, match="tree visits"):
        Sel(Limits(visits=least)).evaluate(text, inputs)


@pytest.mark.parametrize(
    "text",
    [
        "new Boolean(s)",
        "s.startsWith(s)",
        "s.endsWith(s)",
        "m.get(s)",
        "m.containsKey(s)",
        "m.getOrDefault(s, 1)",
        "params['' + s]",
        "params.containsKey(s)",
    ],
)
def test_a_loop_over_a_long_string_ends_at_the_budget(text: str) -> None:
    program = Sel(Limits(visits=250_000)).program(f"for (i = 0; i < 2000; i += 1) {{ {text}; }}")

    with pytest.raises(LimitExceeded, match="tree visits"):
        program.value({"s": "x" * 700_000, "m": {}}, seeded("s", 0))
