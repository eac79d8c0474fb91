import pytest

from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import (
    Unplaced,
    is_guidance,
    lay_guidance_over,
    place_documents,
    replace_documents,
    split,
    suite_guidance,
)
from scenarios.spec import ScenarioSpec

GUIDANCE = [
    "AGENTS.md",
    "docs/AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursor/rules",
    ".cursor/rules/style/a.mdc",
    ".github/copilot-instructions.md",
    "skills/git/SKILL.md",
    ".claude/skills/git/SKILL.md",
]
OTHERS = ["README.md", "MY_AGENTS.md", "AGENTS.md.bak", "skills/SKILL.md", "skills/git/run.sh", "agents/x.md"]


def files(**contents):
    return tuple(FixtureFile(path, text.encode()) for path, text in sorted(contents.items()))


def suite(fixtures, *, empty=False):
    scenarios = (ScenarioSpec(key="a", prompt="x"),) if empty else ()
    return ParsedSuite("s", "llm_tool_test", scenarios, fixtures)


@pytest.mark.parametrize("path", GUIDANCE)
def test_guidance_is_known_by_its_name(path):
    assert is_guidance(path)


@pytest.mark.parametrize("path", OTHERS)
def test_other_files_are_none(path):
    assert not is_guidance(path)


def test_a_project_may_name_more():
    assert is_guidance("docs/deep/a.guide.md", ["docs/**/*.guide.md"])
    assert not is_guidance("docs/deep/a_guide_md", ["docs/**/*.guide.md"])


def test_a_fixture_is_split():
    rest, guidance = split(files(**{"AGENTS.md": "1", "a.txt": "2"}))
    assert (rest, guidance) == (files(**{"a.txt": "2"}), files(**{"AGENTS.md": "1"}))


def test_shared_guidance_has_its_own_path():
    fixture = files(**{"AGENTS.md": "1"})
    assert suite_guidance(suite({"x": fixture, "y": fixture})) == fixture


DIFFERENT = {
    "other content": (
        {"x": {"AGENTS.md": "1"}, "y": {"AGENTS.md": "2"}},
        ["x/AGENTS.md", "y/AGENTS.md"],
        False,
    ),
    "only in one": ({"x": {"AGENTS.md": "1"}, "y": {"f": "2"}}, ["x/AGENTS.md"], False),
    "not in the empty workspace": ({"x": {"AGENTS.md": "1"}}, ["x/AGENTS.md"], True),
    "a path like a fixture's name": ({"x": {"x/AGENTS.md": "1"}}, ["x/x/AGENTS.md"], False),
}


@pytest.mark.parametrize(("fixtures", "paths", "empty"), DIFFERENT.values(), ids=DIFFERENT)
def test_the_fixture_is_named_if_workspaces_differ(fixtures, paths, empty):
    made = {name: files(**contents) for name, contents in fixtures.items()}
    assert [file.path for file in suite_guidance(suite(made, empty=empty))] == paths


@pytest.mark.parametrize(("fixtures", "paths", "empty"), DIFFERENT.values(), ids=DIFFERENT)
def test_the_uploads_own_guidance_changes_no_workspace(fixtures, paths, empty):
    made = {name: files(**contents) for name, contents in fixtures.items()}
    guidance = suite_guidance(suite(made, empty=empty))
    for name, fixture in made.items():
        assert lay_guidance_over(fixture, guidance, name=name, names=set(made)) == fixture
    if empty:
        assert lay_guidance_over((), guidance, name="", names=set(made)) == ()


def test_other_guidance_replaces_and_removes():
    fixture = files(**{"AGENTS.md": "old", "CLAUDE.md": "old", "a.txt": "kept"})
    laid = lay_guidance_over(fixture, files(**{"AGENTS.md": "new"}), name="x", names={"x", "y"})
    assert laid == files(**{"AGENTS.md": "new", "a.txt": "kept"})


def test_guidance_for_one_fixture_is_for_it_alone():
    guidance = files(**{"AGENTS.md": "all", "x/AGENTS.md": "x"})
    laid = {name: lay_guidance_over((), guidance, name=name, names={"x", "y"}) for name in ("x", "y", "")}
    assert laid == {
        "x": files(**{"AGENTS.md": "x"}),
        "y": files(**{"AGENTS.md": "all"}),
        "": files(**{"AGENTS.md": "all"}),
    }


ONE = files(**{"AGENTS.md": "old"})
TWO = files(**{"AGENTS.md": "old", "docs/RULES.md": "rules"})


@pytest.mark.parametrize(
    ("path", "own", "place"),
    [
        ("good.md", ONE, "AGENTS.md"),
        ("CLAUDE.md", ONE, "AGENTS.md"),
        ("AGENTS.md", TWO, "AGENTS.md"),
        ("docs/RULES.md", TWO, "docs/RULES.md"),
        ("RULES.md", TWO, "docs/RULES.md"),
        ("AGENTS.md", (), "AGENTS.md"),
    ],
)
def test_a_document_takes_the_place_of_the_suites_own(path, own, place):
    assert place_documents(files(**{path: "new"}), own) == files(**{place: "new"})


@pytest.mark.parametrize(
    ("path", "own", "message"),
    [
        ("good.md", TWO, "'good.md' could take the place of several documents: AGENTS.md, docs/RULES.md."),
        ("CLAUDE.md", TWO, "'CLAUDE.md' could take the place of several"),
        ("AGENTS.md", files(**{"a/AGENTS.md": "", "b/AGENTS.md": ""}), "a/AGENTS.md, b/AGENTS.md"),
        ("good.md", (), "no agent looks for that name"),
    ],
)
def test_a_document_without_one_clear_place_is_refused(path, own, message):
    with pytest.raises(Unplaced, match=message):
        place_documents(files(**{path: "new"}), own)


def test_several_documents_are_placed_by_their_path():
    given = files(**{"AGENTS.md": "new", "CLAUDE.md": "more"})
    assert place_documents(given, ONE) == given
    with pytest.raises(Unplaced, match=r"take the place of docs/RULES\.md"):
        place_documents(files(**{"RULES.md": "1", "docs/RULES.md": "2"}), TWO)


def test_a_named_path_is_meant_as_it_is():
    given = files(**{"CLAUDE.md": "new"})
    assert place_documents(given, ONE, named=("CLAUDE.md",)) == given
    assert replace_documents(ONE, given) == files(**{"AGENTS.md": "old", "CLAUDE.md": "new"})


def test_documents_that_none_replaces_stay():
    assert replace_documents(TWO, files(**{"AGENTS.md": "new"})) == files(
        **{"AGENTS.md": "new", "docs/RULES.md": "rules"}
    )
