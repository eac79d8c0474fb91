from __future__ import annotations

import pytest

from evaluators.tool_use.guidelines import DEFAULT_PATTERNS, BadGlob, is_guideline, matcher
from tests.linear_time import assert_linear_time


@pytest.mark.parametrize(
    ("path", "patterns", "expected"),
    [
        pytest.param("x.instructions.md", None, True, id="default at the root"),
        pytest.param("a/b/x.prompt.md", None, True, id="default in a folder"),
        pytest.param("a/instructions/b/c.py", None, True, id="default folder at any depth"),
        pytest.param("prompts", None, True, id="the folder itself"),
        pytest.param("my-prompts/x.md", None, False, id="a folder with another name"),
        pytest.param("readme.md", None, False, id="no guideline"),
        pytest.param("prompts/x.md", [], False, id="no patterns at all"),
        pytest.param("docs\\prompts\\x.md", None, True, id="backslashes in the path"),
        pytest.param("docs/x.md", ["docs\\*.md"], True, id="backslashes in the pattern"),
        pytest.param("docs/a/x.md", ["docs/*.md"], False, id="one star stays in its folder"),
        pytest.param("docs/a/x.md", ["docs/**/*.md"], True, id="two stars cross folders"),
        pytest.param("docs/x.md", ["docs/**/*.md"], True, id="two stars match no folder"),
        pytest.param(".github/prompts/x.md", None, True, id="dotted folders match"),
        pytest.param("X.PROMPT.md", None, False, id="case counts"),
        pytest.param("a/b.txt", ["a/?.txt"], True, id="a question mark is one character"),
        pytest.param("a/b.txt", ["a/?b.txt"], False, id="a question mark is not nothing"),
        pytest.param("a.txt", ["*.{md,txt}"], True, id="one of several"),
        pytest.param("a,b.txt", ["a,b.txt"], True, id="a comma outside braces"),
        pytest.param("axb", ["a.b"], False, id="a dot is a dot"),
        pytest.param("./prompts/x", ["./prompts/**"], True, id="a leading dot"),
    ],
)
def test_it_recognizes_guidelines_by_path(path, patterns, expected):
    assert is_guideline(path, patterns) is expected


def test_the_defaults_are_those_of_the_specification():
    assert DEFAULT_PATTERNS == (
        "**/*.instructions.md",
        "**/instructions/**",
        "**/*.prompt.md",
        "**/prompts/**",
    )


@pytest.mark.parametrize("pattern", ["", " ", "*.{md", "*.md}", "}{", "a" * 2001])
def test_it_refuses_a_pattern_that_cannot_be_used(pattern):
    with pytest.raises(BadGlob):
        matcher(pattern)


@pytest.mark.hostile
def test_it_takes_linear_time_for_hostile_patterns():
    def match(number):
        assert is_guideline("a" * number, ["*a" * 100 + "b"]) is False

    assert_linear_time(match, 1_250, 5_000)
