import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.formats.js_literals import NotStatic, object_literals, static_value
from scenarios.formats.js_tokens import Token, UnreadableSource, tokenize

CALM = settings(deadline=None)
"""Other tests share the machine."""


def kinds(source):
    return [token.kind for token in tokenize(source)]


def value_of(source):
    return static_value(tokenize(source))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("'it'", "it", id="single quotes"),
        pytest.param('"Don\'t"', "Don't", id="the other quote inside"),
        pytest.param(r"'Don\'t'", "Don't", id="an escaped quote"),
        pytest.param("`two\r\nlines`", "two\nlines", id="a template"),
        pytest.param(r"'\n\t\0\q'", "\n\t\0q", id="short escapes"),
        pytest.param(r"'\x41\u00e9\u{1F600}'", "Aé😀", id="numbered escapes"),
        pytest.param(r"'\ud83d\ude00'", "😀", id="two escapes are one character"),
        pytest.param(r"'\ud83d'", "�", id="half a character"),
        pytest.param("'a\\\nb'", "ab", id="a line continued"),
        pytest.param("'// no comment'", "// no comment", id="a comment's sign in a text"),
    ],
)
def test_a_text_is_decoded(source, text):
    assert tokenize(source) == [Token("text", text)]


@pytest.mark.parametrize(
    "source",
    ["// 'x'\n", "/* 'x' */", "/* 'x", "#!/usr/bin/env node 'x'\n", "\ufeff \n"],
    ids=["line", "block", "unclosed block", "first line", "white space"],
)
def test_a_comment_is_not_a_token(source):
    assert tokenize(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("`a ${`b ${'}'}`} c` x", ["template", "word"], id="templates in templates"),
        pytest.param("a = /['\"`]/g", ["word", "sign", "regex"], id="quotes in a regular expression"),
        pytest.param("return /[/]'/", ["word", "regex"], id="a slash in a class"),
        pytest.param("a / b / c", ["word", "sign", "word", "sign", "word"], id="divisions"),
        pytest.param("(a) / 2", ["sign", "word", "sign", "sign", "number"], id="a division after a bracket"),
        pytest.param("x => 0x1F", ["word", "sign", "number"], id="an arrow"),
        pytest.param("#own $a ...b", ["word", "word", "sign", "word"], id="names"),
    ],
)
def test_it_recognizes_the_kinds_of_tokens(source, expected):
    assert kinds(source) == expected


@pytest.mark.parametrize(
    ("source", "line"),
    [("x\n'open", 2), ("`open", 1), ("`${'a'", 1), ("\n\n`${`", 3), ("'a\nb'", 1)],
    ids=["text", "template", "substitution", "template in one", "text over lines"],
)
def test_unclosed_text_is_refused_with_its_line(source, line):
    with pytest.raises(UnreadableSource, match=f"In line {line} "):
        tokenize(source)


def test_templates_nested_too_deep_are_refused():
    with pytest.raises(UnreadableSource, match="nested"):
        tokenize("`${" * 1000)


def test_a_long_line_of_slashes_takes_no_long_time():
    assert len(tokenize("=/[" * 20_000)) == 60_000


@CALM
@given(st.text(string.printable + "é😀"))
def test_any_text_is_tokenized_or_refused(source):
    try:
        tokenize(source)
    except UnreadableSource as error:
        assert str(error).endswith(".")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@CALM
@given(JSON)
def test_json_is_read_as_the_value_it_is(value):
    assert value_of(json.dumps(value)) == value


@CALM
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r")))
def test_a_template_shows_whether_it_has_the_answer(text):
    escaped = text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
    assert tokenize(f"`{escaped}`") == [Token("text", text)]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("'a ' + \"b\" + `c`", "a bc", id="texts joined"),
        pytest.param("('a')", "a", id="in brackets"),
        pytest.param(
            "{ a: [1, -2.5, 1_000], 'b-c': null, }", {"a": [1, -2.5, 1000], "b-c": None}, id="object"
        ),
        pytest.param("'a' as const", "a", id="with a type"),
        pytest.param("0x1F", 31, id="in another base"),
    ],
)
def test_a_value_that_is_written_out_is_read(source, value):
    assert value_of(source) == value


@pytest.mark.parametrize(
    "source",
    [
        "a",
        "f('a')",
        "`${a}`",
        "1 + 2",
        "{ a, b: 1 }",
        "{ ...a }",
        "{ f() {} }",
        "c ? 'a' : 'b'",
        "",
        "1e999",
    ],
)
def test_a_value_that_is_computed_is_not_static(source):
    with pytest.raises(NotStatic):
        value_of(source)


def test_nesting_without_end_is_not_static():
    with pytest.raises(NotStatic):
        value_of("[" * 5000 + "]" * 5000)


def test_it_finds_the_literals_of_a_module_with_their_names():
    source = """
    const helper = () => { const inner = { name: 'inner' } }
    export const a = { name: 'a' }
    export const b: Tool<{ x: string }> = defineTool({ name: 'b' })
    export default { name: 'c' }
    """
    found = [(literal.name, literal.value("name")) for literal in object_literals(tokenize(source))]
    assert found == [("a", "a"), ("b", "b"), ("default", "c")]


def test_a_field_that_is_missing_is_not_static():
    (literal,) = object_literals(tokenize("x = { get name() { return 'a' } }"))
    with pytest.raises(NotStatic):
        literal.value("name")
