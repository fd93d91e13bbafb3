"""Pictures of definitions: blocks in blocks, labels, and signs that Mermaid would read as its own."""

from kapelle.processors.definitions import parse_push, picture_of
from tests.unit.definitions.composite_samples import NESTED, long, loop_params, text
from tests.unit.definitions.samples import FULL, changed, text_of


def test_loops_are_boxes_around_their_blocks() -> None:
    assert picture_of(parse_push(text_of(NESTED)).workflow) == (
        "flowchart TD\n"
        '  s0["load"]\n'
        '  subgraph s1["fan: for each i, j"]\n'
        '    s2["first"]\n'
        "    subgraph s3[\"poll: while tries #lt; limit && i #gt; 0 && color == 'red'\"]\n"
        '      s4["ask"]\n'
        '      subgraph s5["deep: for each k"]\n'
        '        s6[["child: runs other-${k}"]]\n'
        "      end\n"
        "      s4 --> s5\n"
        "    end\n"
        '    s7[["sub: runs other"]]\n'
        '    s8["after"]\n'
        "    s2 --> s3\n"
        "    s2 --> s7\n"
        "    s7 --> s8\n"
        "  end\n"
        '  s9["report"]\n'
        '  subgraph s10["again: while i #lt; 2"]\n'
        '    s11["count"]\n'
        "  end\n"
        "  s0 --> s1\n"
        "  s1 --> s9\n"
        "  s9 --> s10\n"
    )


def test_conditions_of_transitions_are_shown() -> None:
    picture = picture_of(parse_push(text_of(FULL)).workflow)

    assert 's0 -- "n #gt; 0" --> s1' in picture
    assert 's0 -- "n == 0" --> s4' in picture


def test_signs_of_mermaid_and_long_texts_cannot_break_out_of_a_label() -> None:
    condition = '"]; end <b>#`x`\\\\" !=\n "' + "x" * 100 + '"'
    steps = [
        {
            "while": {
                "id": "end",
                "condition": condition,
                "params": loop_params(i=long(0)),
                "steps": [{"subworkflow": {"id": "graph", "params": {"subworkflow_id": text("a")}}}],
            }
        }
    ]

    [_, box, *_] = picture_of(parse_push(text_of(changed("workflow.steps", steps, NESTED))).workflow).splitlines()

    label = box.removeprefix('  subgraph s0["').removesuffix('"]')
    assert not set(label) & set('"<>`\\')
    assert label.startswith("end: while #quot;]; end #lt;b#gt;#35;#96;x#96;#92;#92;#quot; != #quot;x")
    assert label.endswith("x…")
