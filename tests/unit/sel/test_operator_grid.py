"""Every operator with every pair of types: what type comes out, or that nothing does."""

import pytest

from kapelle.processors.sel import Sel, SelError, TypeMismatch

SEL = Sel()
# A value of each type. The right side of a division is never zero.
OPERANDS = {
    "LONG": "6",
    "DOUBLE": "2.5",
    "STRING": "'a'",
    "BOOLEAN": "true",
    "NULL": "null",
    "LONGS": "(new long[]{1})",
    "STRINGS": "(new String[]{'a'})",
    "MAP": "(new Map())",
    "TIME": "(new DateTime(0))",
    "ZONE": "DateTimeZone.UTC",
}
TYPES = {"L": "LONG", "D": "DOUBLE", "S": "STRING", "B": "BOOLEAN"}

# Rows are left operands, columns right ones, both in the order of OPERANDS; a dot is a type error.
GRIDS = {
    "+": """
        L D S . . . . . . .
        D D S . . . . . . .
        S S S S S S S S S S
        . . S . . . . . . .
        S S S S S S S S S S
        . . S . . . . . . .
        . . S . . . . . . .
        . . S . . . . . . .
        . . S . . . . . . .
        . . S . . . . . . .""",
    "- * / %": """
        L D . . . . . . . .
        D D . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .""",
    "== !=": """
        B B B . B . . . . .
        B B B . B . . . . .
        . . B . B . . . . .
        . . . B B . . . . .
        B B B B B B B B B B
        . . . . B . . . . .
        . . . . B . . . . .
        . . . . B . . . . .
        . . . . B . . . . .
        . . . . B . . . . .""",
    "< >": """
        B B . . . . . . . .
        B B . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        B B B B B B B B B B
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .""",
    "<= >=": """
        B B . . . . . . . .
        B B . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .""",
    "&& ||": """
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . B . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .
        . . . . . . . . . .""",
}
CASES = [
    pytest.param(sign, left, right, cell, id=f"{left}{sign}{right}")
    for signs, grid in GRIDS.items()
    for sign in signs.split()
    for left, line in zip(OPERANDS, grid.split("\n")[1:], strict=True)
    for right, cell in zip(OPERANDS, line.split(), strict=True)
]


@pytest.mark.parametrize(("sign", "left", "right", "cell"), CASES)
def test_an_operator_gives_the_type_of_the_grid(sign: str, left: str, right: str, cell: str) -> None:
    # `true || x` does not look at x: the left side must leave the question open.
    first = "false" if sign == "||" and left == "BOOLEAN" else OPERANDS[left]
    expression = f"{first} {sign} {OPERANDS[right]}"

    if cell == ".":
        with pytest.raises(TypeMismatch):
            SEL.evaluate(expression)
    else:
        assert SEL.evaluate(expression).type == TYPES[cell]


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize(("name", "start"), [("LONG", "7"), ("DOUBLE", "7.5"), ("STRING", "'a'")])
def test_a_compound_assignment_is_the_operator_and_an_assignment(sign: str, name: str, start: str) -> None:
    plain, compound = f"y = {start}; y {sign} {start}", f"y = {start}; y {sign}= {start}; y"

    try:
        expected = SEL.evaluate(plain)
    except SelError as error:
        with pytest.raises(type(error)):
            SEL.evaluate(compound)
    else:
        assert SEL.evaluate(compound) == expected
