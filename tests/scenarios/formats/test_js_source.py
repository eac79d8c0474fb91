"""Modules of JavaScript and TypeScript: what is written out is read, and nothing is run."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.formats.js_source import NotStatic, UnreadableSource, exports_from, object_literals, parse


def value_of(source):
    (literal,) = object_literals(parse(f"x = {{ v: {source}\n }}"))
    return literal.value("v")


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
        pytest.param("'a' /* no 'b' */ + // nor 'c'\n 'd'", "ad", id="comments"),
    ],
)
def test_a_text_is_decoded(source, text):
    assert value_of(source) == text


@pytest.mark.parametrize(
    "source",
    ["// { a: 1 }\n", "/* { a: 1 } */", "#!/usr/bin/env node { a: 1 }\n", "", "x = /{a}'/; if (x) { y: 1 }"],
    ids=["line", "block", "first line", "nothing", "a regular expression and a block"],
)
def test_a_module_without_literals_has_none(source):
    assert object_literals(parse(source)) == []


@pytest.mark.parametrize(
    ("source", "line"),
    [("x\n'open", 2), ("`open", 1), ("`${'a'", 1), ("\n\nexport const = 3", 3)],
    ids=["text", "template", "substitution", "syntax"],
)
def test_what_cannot_be_parsed_is_refused_with_its_line(source, line):
    with pytest.raises(UnreadableSource, match=f"Line {line} cannot be parsed"):
        object_literals(parse(source))


@given(st.text(string.printable + "é😀"))
def test_any_text_is_read_or_refused_in_a_sentence(source):
    try:
        object_literals(parse(source))
    except UnreadableSource as error:
        assert str(error).endswith(".")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@given(JSON)
def test_json_is_read_as_the_value_it_is(value):
    assert value_of(json.dumps(value)) == value


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_a_template_says_what_it_holds(text):
    escaped = text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
    assert value_of(f"`{escaped}`") == text


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("'a ' + \"b\" + `c`", "a bc", id="texts joined"),
        pytest.param(" +\n".join(["'a'"] * 500), "a" * 500, id="many texts joined"),
        pytest.param("('a')", "a", id="in brackets"),
        pytest.param(
            "{ a: [1, -2.5, 1_000], 'b-c': null, }", {"a": [1, -2.5, 1000], "b-c": None}, id="object"
        ),
        pytest.param("'a' as const", "a", id="with a type"),
        pytest.param("'a' satisfies string", "a", id="checked against a type"),
        pytest.param("0x1F", 31, id="in another base"),
    ],
)
def test_a_value_that_is_written_out_is_read(source, value):
    assert value_of(source) == value


@pytest.mark.parametrize(
    "source",
    [
        *("a", "f('a')", "`${a}`", "1 + 2", "{ a, b: 1 }", "{ ...a }", "{ f() {} }", "{ [a]: 1 }"),
        *("c ? 'a' : 'b'", "'a' - 'b'", "-'a'", "!1", "1e999", "'a\nb'", "[...a]", "async () => 'a'"),
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
    class A { b = { name: 'field' } }
    export const a = { name: 'a' }
    export const b: Tool<{ x: string }> = defineTool({ name: 'b' })
    export default { name: 'c' }
    """
    found = [(literal.name, literal.value("name")) for literal in object_literals(parse(source))]
    assert found == [("a", "a"), ("b", "b"), ("default", "c")]


def test_a_field_that_is_missing_is_not_static():
    (literal,) = object_literals(parse("x = { get name() { return 'a' } }"))
    with pytest.raises(NotStatic):
        literal.value("name")


def test_it_finds_what_a_barrel_exports_of_other_files():
    source = "export { a, b as c } from './a'\nexport * from \"./b\"\nexport const d = 1\nexport type { E } from './e'"
    assert list(exports_from(parse(source))) == [(("a", "b"), "./a"), ((), "./b")]
