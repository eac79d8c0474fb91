"""`compare_guidance`."""

from __future__ import annotations

import pytest

from evalhub.teams.access import default_project
from tests.builders import close, make_guidance, make_run, make_suite, make_trial
from tests.commands.calling import call

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.spec("llm-tool-test", "Comparing guidance versions"),
    pytest.mark.one_database,
]


@pytest.fixture
def version():
    return make_suite(default_project(), name="Basics")


def test_it_compares_two_versions_by_name_or_number(version):
    pair = [make_guidance(version.suite, name) for name in ("poor", "good")]
    for each, outcome in zip(pair, ("fail", "pass"), strict=True):
        run = make_run(version, guidance=each)
        for _ in range(5):
            make_trial(run, "create", outcome=outcome)
        close(run)
    ended = call("compare_guidance", "poor", str(pair[1].number))
    assert ended.out.startswith("Improved: good compared with poor on local.\n")
    assert "Pass rate" in ended.out
    assert call("compare_guidance", "poor", "good", "--json").document["verdict"] == "improved"


def test_without_runs_it_says_how_to_get_some(version):
    one, other = make_guidance(version.suite, "poor"), make_guidance(version.suite, "good")
    ended = call("compare_guidance", "poor", "good")
    assert f"run_scenarios basics --guidance {one.number} --guidance {other.number}." in ended.out


def test_unknown_and_ambiguous_versions_are_refused(version):
    for suite in (version.suite, make_suite(default_project(), name="Second").suite):
        make_guidance(suite, "poor"), make_guidance(suite, "good")
    ended = call("compare_guidance", "poor", "good")
    assert (ended.code, ended.err.strip()) == (
        2, "Several suites have both: basics, second. Name one with --suite.",
    )  # fmt: skip
    ended = call("compare_guidance", "poor", "nowhere", "--suite", "basics")
    assert ended.code == 2
    assert "No suite has two versions of guidance 'poor' and 'nowhere'." in ended.err
