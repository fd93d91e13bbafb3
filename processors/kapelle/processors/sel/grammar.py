"""The grammar of SEL: a subset of Java's expressions and statements, LALR(1).

Binary operators are one flat rule, which the builder groups by `PRECEDENCE`: a rule for each level would be reduced
for every operand, and parsing would take twice as long.
Two tricks keep it LALR(1): `[]` is one token, so that `String[] a` and `a[0]` differ at once; and the left side of an
assignment is parsed as any access and checked when the tree is built. Words and operators of Java that SEL lacks are
tokens that no rule accepts, so that they end in a hint and never in a different meaning (`--x` is not `-(-x)`).
"""

# The binary operators, those that bind tightest first.
PRECEDENCE = (("*", "/", "%"), ("+", "-"), ("<", ">", "<=", ">="), ("==", "!="), ("&&",), ("||",))

GRAMMAR = r"""
start: import_* statement*

import_: "import" "static"? NAME ("." NAME)* ["." MULTIPLY] ";"

?statement: block | ";" -> empty | expression ";" -> expression_statement | if_ | while_ | for_
    | BREAK ";" -> break_ | CONTINUE ";" -> continue_
    | "return" expression ";" -> return_ | "throw" expression ";" -> throw_ | declaration ";"

block: "{" statement* "}"
if_: "if" "(" expression ")" statement ["else" statement]
while_: WHILE "(" expression ")" statement
for_: FOR "(" for_init ";" for_part ";" for_part ")" statement
for_init: [declaration | expression]
for_part: [expression]

?declaration: NAME declarator ("," declarator)* -> declare
    | NAME BRACKETS declarator ("," declarator)* -> declare_array
declarator: NAME ["=" (expression | array_items)]
array_items: "{" [expression ("," expression)* [","]] "}"

?expression: conditional | postfix "=" expression -> assign | postfix OP_ASSIGN expression -> op_assign
?conditional: binary | binary "?" expression ":" expression -> choose
?binary: unary ((LOGIC | EQUALITY | RELATION | PLUS_MINUS | MULTIPLY) unary)*
?unary: postfix | PLUS_MINUS unary -> prefix | NOT unary -> prefix
?postfix: primary | primary suffix+ -> access
?suffix: "." NAME -> field
    | "." NAME "(" arguments ")" -> call
    | "[" expression "]" -> index
arguments: [expression ("," expression)*]
?primary: literal | NAME -> name | "(" expression ")"
    | "new" NAME "(" arguments ")" -> new_object
    | "new" NAME "[" expression "]" -> new_array
    | "new" NAME BRACKETS array_items -> new_array_of
?literal: INTEGER -> integer | DECIMAL -> decimal | STRING -> string
    | TRUE -> true | FALSE -> false | NULL -> null
    | FOREIGN_WORD -> foreign | FOREIGN_SIGN -> foreign

FOR: "for"
WHILE: "while"
BREAK: "break"
CONTINUE: "continue"
TRUE: "true"
FALSE: "false"
NULL: "null"

NAME: /[A-Za-z_$\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u3040-\u318f\u3300-\u3d2d\u4e00-\u9fff\uf900-\ufaff][\w$]*/
STRING: /"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'/
DECIMAL.2: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFdD]?|[0-9]+[eE][-+]?[0-9]+[fFdD]?|[0-9]+[fFdD]/
INTEGER: /0[xX][0-9A-Fa-f]*[lL]?|[0-9]+[lL]?/

BRACKETS.2: /\[\s*\]/
OP_ASSIGN.2: /[-+*\/%]=/
LOGIC.3: /&&|\|\|/
EQUALITY.3: /[=!]=/
RELATION.2: /[<>]=?/
PLUS_MINUS: /[-+]/
MULTIPLY: /[*\/%]/
NOT: "!"

// What Java has and SEL has not.
FOREIGN_WORD.4: /(?:abstract|assert|case|catch|char|byte|short|class|const|default|do|enum|extends|final|finally)\b/
    | /(?:goto|implements|instanceof|interface|native|package|private|protected|public|super|switch)\b/
    | /(?:synchronized|this|throws|transient|try|void|volatile)\b/
FOREIGN_SIGN.4: /\+\+|--|<<=?|>>>?=?|->|::|&(?!&)=?|\|(?!\|)=?|\^=?|[~@#`\\]/

COMMENT.5: /\/\/[^\n\r]*|\/\*[\s\S]*?\*\//
SPACE: /[ \t\n\r\f]+/
%ignore COMMENT
%ignore SPACE
"""
