"""Programs made at random from the grammar, from the whitelist, and from what is on neither."""

from hypothesis import strategies as st

from kapelle.processors.sel.members.registry import METHODS, NEW, STATIC

NAMES = ["x", "s", "flag", "d", "longs", "strings", "map", "y", "z", "unknown", "params", "Math", "dt"]
METHOD_NAMES = sorted({name for table in METHODS.values() for name in table} | {"getClass", "__class__", "substr"})
STATIC_CALLS = sorted(f"{owner}.{name}" for owner, table in STATIC.items() for name in table)
TYPE_NAMES = ["int", "long", "double", "boolean", "String", "Map", "DateTime", "UUID", "Object"]
TEXTS = [
    "", "a", "a,b", "2024-02-29", "20240229", "UTC", "America/New_York", "yyyyMMdd", "%s", "%5d|%-3s", "[a-z]+",
    "(a|b)*",
    "$1", "\\\\d", "é😀", "1 day and 2 hours", "12", "-1.5", "Europe/Berlin", "HH:mm:ss.SSSZZ", "x", "T10", "(", "\\n",
]  # fmt: skip

literals = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.integers(-3, 30).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda n: f"({n!r})"),
    st.sampled_from(TEXTS).map(lambda t: f'"{t}"'),
    st.sampled_from(["true", "false", "null"]),
)
names = st.sampled_from(NAMES)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=3).map(", ".join)
    signs = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||"])
    return st.one_of(
        st.tuples(inner, signs, inner).map(" ".join),
        inner.map(lambda e: f"({e})"),
        st.tuples(st.sampled_from(["-", "+", "!"]), inner).map(" ".join),
        st.tuples(inner, inner, inner).map(lambda p: f"{p[0]} ? {p[1]} : {p[2]}"),
        st.tuples(inner, st.sampled_from(METHOD_NAMES), arguments).map(lambda p: f"({p[0]}).{p[1]}({p[2]})"),
        st.tuples(names, st.sampled_from(METHOD_NAMES), arguments).map(lambda p: f"{p[0]}.{p[1]}({p[2]})"),
        st.tuples(st.sampled_from(STATIC_CALLS), arguments).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]})[{p[1]}]"),
        st.tuples(st.sampled_from(sorted(NEW)), arguments).map(lambda p: f"new {p[0]}({p[1]})"),
        st.tuples(st.sampled_from(TYPE_NAMES), arguments).map(lambda p: f"new {p[0]}[]{{{p[1]}}}"),
        st.tuples(st.sampled_from(TYPE_NAMES), inner).map(lambda p: f"(new {p[0]}[{p[1]}])"),
        st.tuples(names, st.sampled_from(["=", "+=", "-=", "*=", "/=", "%="]), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(names, inner, inner).map(lambda p: f"({p[0]}[{p[1]}] = {p[2]})"),
    )


expressions = st.recursive(st.one_of(literals, names), _extend, max_leaves=12)


def _extend_statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda body: f"{{ {' '.join(body)} }}"),
        st.tuples(expressions, inner, inner).map(lambda p: f"if ({p[0]}) {p[1]} else {p[2]}"),
        st.tuples(expressions, inner).map(lambda p: f"while ({p[0]}) {p[1]}"),
        st.tuples(expressions, expressions, expressions, inner).map(lambda p: f"for ({p[0]}; {p[1]}; {p[2]}) {p[3]}"),
    )


simple_statements = st.one_of(
    expressions.map(lambda e: f"{e};"),
    expressions.map(lambda e: f"return {e};"),
    expressions.map(lambda e: f"throw {e};"),
    st.tuples(st.sampled_from(TYPE_NAMES), names, expressions).map(lambda p: f"{p[0]} {p[1]} = {p[2]};"),
    st.tuples(st.sampled_from(TYPE_NAMES), names).map(lambda p: f"{p[0]} {p[1]};"),
    st.sampled_from(["break;", "continue;", ";", "import a.b.*;"]),
)
statements = st.recursive(simple_statements, _extend_statements, max_leaves=5)
programs = st.one_of(expressions, st.lists(statements, min_size=1, max_size=4).map(" ".join))
