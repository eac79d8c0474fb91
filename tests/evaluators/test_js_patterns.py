from __future__ import annotations

import pytest

from evaluators.patterns import compile_pattern

pytestmark = pytest.mark.spec("tool-forge", "responseMatches")


def found(pattern: str, text: str) -> str | None:
    match = compile_pattern(pattern, javascript=True).search(text)
    return match.text if match else None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param(r"12\s€", "12\u00a0€", "12\u00a0€", id="white space of Unicode"),
        pytest.param(r"^\S+$", "a\u2009b", None, id="what is none"),
        pytest.param(r"^[\s\d]+$", "1\ufeff2\v", "1\ufeff2\v", id="white space in a class"),
        pytest.param(r"[^\S]", "a\u3000", "\u3000", id="no white space in a class"),
        pytest.param(r"^[^\s]+$", "a\u00a0", None, id="a class without white space"),
        pytest.param(r"\d", "\u0663", None, id="digits of ASCII"),
        pytest.param(r"(?=.)\d", "\u0663", None, id="digits of ASCII, with look-ahead"),
        pytest.param("c$", "abc\n", None, id="the very end"),
        pytest.param("(?!x)c$", "abc\n", None, id="the very end, with look-ahead"),
        pytest.param("(?!x)[$]", "a$", "$", id="a dollar in a class"),
        pytest.param(r"a.c", "a\u2028c", None, id="a point isn't an end of a line"),
        pytest.param(r"[^]{3}", "a\nb", "a\nb", id="any character"),
        pytest.param(r"a[]", "a", None, id="no character"),
        pytest.param(r"[x[]]", "[]", "[]", id="a bracket in a class"),
        pytest.param(r"(?<y>\d+)-\k<y>", "12-12", "12-12", id="a named reference"),
        pytest.param(r"(?<=€)\d", "€5", "5", id="look-behind"),
        pytest.param(r"\u0041\u002e", "A.", "A.", id="a character by its number"),
        pytest.param(r"\u002e", "A", None, id="which isn't a point"),
        pytest.param(r"[\u00e0-\u00ff]", "é", "é", id="a range of numbers"),
        pytest.param(r"\uD83D\uDE00", "😀", "😀", id="a pair of surrogates"),
        pytest.param(r"\cI", "\t", "\t", id="a control character"),
        pytest.param(r"\0", "\x00", "\x00", id="NUL"),
        pytest.param(r"\A\z\Q\_", "AzQ_", "AzQ_", id="letters that no escape has"),
        pytest.param(r"a\/b\-\"", 'a/b-"', 'a/b-"', id="escaped signs"),
        pytest.param(r"[\b]", "\x08", "\x08", id="backspace"),
        pytest.param(r"\bis\b", "it is", "is", id="borders of words"),
        pytest.param(r"\p{Lu}", "é É", "É", id="a property"),
        pytest.param(r"\x41{2}", "AA", "AA", id="a repeated number"),
    ],
)
def test_it_is_read_as_javascript_reads_it(pattern, text, expected):
    assert found(pattern, text) == expected


def test_a_pattern_means_the_same_with_either_engine():
    linear, limited = compile_pattern(r"^\w+$"), compile_pattern(r"(?!-)^\w+$")
    assert (linear.linear, limited.linear) == (True, False)
    for text in ("abc", "abc\n", "é", "a\u0663"):
        assert bool(linear.search(text)) == bool(limited.search(text))


def test_an_error_names_the_pattern_as_it_was_written():
    with pytest.raises(ValueError, match=r"'\\s\(' is not a regular expression"):
        compile_pattern(r"\s(", javascript=True)
