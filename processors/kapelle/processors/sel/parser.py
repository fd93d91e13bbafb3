"""From text to tree, and from the parser's complaints to errors that say what to write instead."""

import re
from functools import lru_cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from kapelle.processors.sel.builder import Builder, foreign_sign
from kapelle.processors.sel.errors import LimitExceeded, ParseError, SelError
from kapelle.processors.sel.grammar import GRAMMAR
from kapelle.processors.sel.limits import Limits
from kapelle.processors.sel.tree import Block

EXPECTED_WORDS = {
    "SEMICOLON": "';'",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "COLON": "':'",
    "EQUAL": "'='",
    "LPAR": "'('",
    "NAME": "a name",
}


_FOREIGN_BEFORE = re.compile(
    r"(\+\+|--|->|::|[~@]|\b(?:do|switch|try|catch|class|final|char|byte|short|instanceof|this|void|public|private))\s*$"
)


@lru_cache(maxsize=8)
def _lark(depth_max: int) -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=Builder(depth_max), maybe_placeholders=False)


def parse(text: str, limits: Limits) -> Block:
    """The tree of a program, or a `ParseError` that says where it stops being SEL."""
    if len(text) > limits.expression_chars:
        raise LimitExceeded("expression_chars", limits.expression_chars).located(text[:200])
    try:
        # The closing semicolon may be left out; an extra one is an empty statement. The line break ends a comment.
        built: Tree[Token] | Block = _lark(limits.stack_depth).parse(f"{text}\n;")
    except UnexpectedToken as error:
        raise _unexpected_token(error, text).located(text) from None
    except UnexpectedCharacters as error:
        raise _unexpected_character(error, text).located(text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, SelError):
            raise error.orig_exc.located(text) from None
        raise
    except SelError as error:
        raise error.located(text) from None
    assert isinstance(built, Block)  # noqa: S101 - the transformer replaces the tree
    return built


def _unexpected_token(error: UnexpectedToken, text: str) -> ParseError:
    token = error.token
    start = int(token.start_pos or 0)
    span = (start, start + len(token))
    expected = _expected(error.expected or error.accepts)
    before = text[:start].rstrip()
    if foreign := _FOREIGN_BEFORE.search(before):  # `++x`: the sign is at fault, not what follows it
        return foreign_sign(foreign[1], foreign.span(1))
    if token.type.startswith("FOREIGN"):
        return foreign_sign(str(token), span)
    comment = text.rfind("/*")
    if comment >= 0 and "*/" not in text[comment:] and comment <= start:
        return ParseError("Expected '*/' to end the comment, but the expression ends", span=(comment, comment + 2))
    if start >= len(text):
        return ParseError(f"Expected {expected}, but the expression ends", span=(len(text), len(text)))
    return ParseError(f"Expected {expected}, but found {str(token)[:40]!r}", span=span, hint=_hint(token, before))


def _hint(token: Token, before: str) -> str:
    opened = "<" in before[-40:] and before.rstrip("<,").endswith(("Map", "List", "String", "Long", "Object"))
    if opened or (str(token) == ">" and before.endswith("<")):
        return "generics are not in SEL: write Map, not Map<String, Long>"
    if token.type == "BRACKETS" or (token.type == "LSQB" and before.endswith("]")):
        return "arrays have one dimension"
    if token.type == "LPAR" and before[-1:].isalnum():
        return "functions are members of something: write Util.name(…) or params.name(…)"
    if token.type == "NAME" and before.endswith(")"):
        return "casts are not in SEL; a ';' may be missing"
    return ""


def _expected(names: set[str] | None) -> str:
    known = sorted({EXPECTED_WORDS[n] for n in names or () if n in EXPECTED_WORDS})
    if not names or {"INTEGER", "STRING", "NEW"} <= set(names):
        return "an expression or a statement" if names and "RETURN" in names else "an expression"
    return " or ".join(known) if 0 < len(known) <= 3 else "an operator or ';'"


def _unexpected_character(error: UnexpectedCharacters, text: str) -> ParseError:
    start = int(error.pos_in_stream or 0)
    character = text[start : start + 1]
    span = (start, start + 1)
    if character in ("'", '"'):
        return ParseError("Expected a closing quote on the same line", span=span, hint="a line break is \\n")
    return ParseError(f"Expected an expression, but found the character {character!r}", span=span)
