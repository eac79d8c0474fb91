"""One test for each scenario of the AgentV specification on guideline patterns."""

from __future__ import annotations

import pytest
from agentv_files import upload

from evaluators.tool_use.guidelines import is_guideline
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

STYLE = "docs/style.instructions.md"
TABLE = "evals/data/table.csv"


def read(**more: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (suite,) = parse_files(upload(**more), name="b")
    return suite.scenarios[0].guidelines, suite.scenarios[0].input_files


class TestGuidelinePatternConfiguration:
    @pytest.mark.parametrize("pattern", ["**/*.csv", "evals/data/*.csv", "data/*.csv"])
    @pytest.mark.spec("agentv", "Patterns of .agentv.yaml")
    def test_load_custom_guideline_patterns(self, pattern):
        guidelines, files = read(**{"evals/.agentv.yaml": f"guideline_patterns: ['{pattern}']\n"})
        assert (guidelines, files) == ((TABLE,), (STYLE,))

    @pytest.mark.spec("agentv", "Default patterns")
    def test_use_defaults_when_config_absent(self):
        assert read() == ((STYLE,), (TABLE,))

    @pytest.mark.parametrize("text", ["$schema: agentv-config-v2\n", "guideline_patterns:\n"])
    def test_use_defaults_when_the_config_gives_no_patterns(self, text):
        assert read(**{".agentv/config.yaml": text}) == ((STYLE,), (TABLE,))

    @pytest.mark.spec("agentv", "Matching of globs")
    def test_match_files_with_glob_patterns(self):
        assert is_guideline("a\\prompts\\b.md") is True
        assert is_guideline("a/b/c.md", ["a/*.md"]) is False
        assert is_guideline("a/b/c.md", ["a/**/*.md"]) is True

    @pytest.mark.parametrize("place", [".agentv/config.yaml", "evals/.agentv/config.yaml"])
    def test_a_repository_config_defines_patterns(self, place):
        assert read(**{place: "guideline_patterns: ['**/*.csv']\n"}) == ((TABLE,), (STYLE,))

    def test_the_nearest_pattern_file_wins(self):
        config = {
            ".agentv/config.yaml": "guideline_patterns: [a]\n",
            "evals/.agentv/config.yaml": "guideline_patterns: ['**/*.csv']\n",
        }
        assert read(**config)[0] == (TABLE,)
        assert read(**config, **{"evals/.agentv.yaml": "guideline_patterns: ['docs/**']\n"})[0] == (STYLE,)

    def test_the_patterns_are_kept_with_the_suite(self):
        (suite,) = parse_files(upload(**{"evals/.agentv.yaml": "guideline_patterns: [x]\n"}), name="b")
        assert suite.settings["guideline_patterns"] == ["x"]

    @pytest.mark.parametrize(
        ("text", "line", "id"),
        [
            ("guideline_patterns: x\n", 1, "format/wrong-type"),
            ("guideline_patterns:\n  - a\n  - '*.{md'\n", 3, "format/bad-glob"),
            ("a: [\n", 2, "format/not-yaml"),
        ],
    )
    def test_a_broken_config_is_reported_with_its_line(self, text, line, id):
        with pytest.raises(ScenarioFileError) as refused:
            read(**{"evals/.agentv.yaml": text})
        problems = [(one.file, one.line, one.id) for one in refused.value.problems]
        assert ("evals/.agentv.yaml", line, id) in problems
