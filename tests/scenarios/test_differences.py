"""What two versions of a suite differ in."""

from __future__ import annotations

import pytest

from evaluators.statistics.comparability import Standard
from scenarios.bundles import Bundle
from scenarios.differences import Changed, Content, compare_suites, contents_of, parsed_contents
from scenarios.formats import parse_files
from scenarios.imports import import_files
from tests.builders import make_project

FILE = b"""name: list-files
description: Lists the files.
target:
  binary: ls
task:
  prompt: |
    List the files.
    All of them.
evaluation:
  gates:
    - type: file_exists
      path: out.txt
"""


def parsed(content: bytes = FILE, **files: bytes):
    return parse_files({"list.yaml": content, **files}, name="basics", command_pattern="")[0]


def compared(after: bytes, before: bytes = FILE):
    return compare_suites(parsed_contents(parsed(before)), parsed_contents(parsed(after)))


def content(sha256: str, *parts: str) -> Content:
    return Content(sha256, Standard(*(parts or ("t", "g", "j", "r"))))


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (b"All of them.", b"Every one.", ["task"]),
        (b"out.txt", b"all.txt", ["gates"]),
        (b"Lists the", b"Names the", []),
    ],
    ids=["prompt", "gate", "words"],
)
def test_it_names_the_changed_parts_of_a_scenario(old, new, parts):
    (changed,) = compared(FILE.replace(old, new)).scenarios
    assert (changed.how, changed.parts) == ("changed", parts)


def test_it_counts_scenarios_that_are_not_comparable():
    before = {"same": content("1"), "words": content("2"), "gate": content("3"), "gone": content("4")}
    after = {
        "same": content("1"),
        "words": content("5"),
        "gate": content("6", "t", "x", "j", "r"),
        "new": content("7"),
    }
    found = compare_suites(before, after)
    assert [(each.key, each.how) for each in found.scenarios] == [
        ("new", "added"),
        ("gate", "changed"),
        ("words", "changed"),
        ("gone", "retired"),
    ]
    assert (found.incomparable, found.common) == (1, 3)
    assert found.summary == "1 added, 2 changed, 1 retired"


def test_equal_versions_differ_in_nothing():
    found = compared(FILE)
    assert (found.scenarios, found.summary) == ((), "nothing changed")


def test_the_lines_of_a_prompt_are_compared():
    (changed,) = compared(FILE.replace(b"All of them.", b"Every one.")).scenarios
    assert changed.text is not None
    lines = [(line.look, line.text.strip()) for hunk in changed.text.hunks for line in hunk]
    assert [line for line in lines if line[0]] == [("removed", "All of them."), ("added", "Every one.")]
    assert ("", "List the files.") in lines


def test_a_moved_scenario_is_unchanged():
    assert compared(b"# moved down\n\n" + FILE).scenarios == ()


@pytest.mark.django_db
def test_stored_content_equals_parsed_content():
    (stored,) = import_files(Bundle("basics", {"list.yaml": FILE}), project=make_project(), by=None)
    (kept,), fresh = contents_of(stored.version), parsed_contents(parsed())
    assert compare_suites(kept, fresh).scenarios == ()
    text = Changed("list-files", "changed", *kept.values(), *fresh.values()).text
    assert text is not None
    assert text.hunks == ()
    assert contents_of(stored.version, whole=False)[0]["list-files"].content is None
