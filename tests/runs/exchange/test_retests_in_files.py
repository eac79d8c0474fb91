"""Fresh trials are marked in every file of a run, and counted in none."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from evaluators.grading.suite_result import suite_result
from runs.compare.comparison import comparison_of
from runs.compare.retests import retests_of
from runs.exchange.exports.console import summary_lines
from runs.exchange.exports.document import run_digest, run_document
from runs.exchange.exports.result_formats import junit_xml, suite_run, write_jsonl
from runs.exchange.exports.run_archive import run_archive
from runs.exchange.exports.summary_markdown import RELATED, run_summary
from runs.exchange.imports.import_results import import_results
from runs.models import Run, Trial
from runs.results.digests import digest_of
from runs.results.run_list import release_result
from tests.builders import make_project
from tests.runs.looking import failing, ran, suite

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> Run:
    """Return a run whose scenario `add` failed three first trials and six fresh ones."""
    version = suite(provider="cli")
    version.suite.release_k, version.suite.release_threshold = 3, 0.5
    version.suite.save()
    ran(version, failing(), trials=6)
    done = ran(version, failing("add", cost_usd=0.1), trials=3)
    assert done.find_retested("named") == ["add"]
    return Run.objects.select_related(*RELATED).get(pk=done.pk)


def marks_of(run: Run) -> list[tuple[str, int, bool]]:
    return list(Trial.objects.filter(run=run).values_list("scenario__key", "index", "is_retest"))


def test_an_archive_brings_them_back(run: Run) -> None:
    (copied,) = import_results(make_project("other"), run_archive([run.pk]), "runs.zip", by=None)
    assert (copied.trials, copied.passed, copied.failed) == (15, 12, 3)
    assert copied.retests == run.retests
    assert copied.retest_usd == run.retest_usd == pytest.approx(0.6)
    assert sorted(marks_of(copied)) == sorted(marks_of(run))
    assert copied.cost_of_trial == pytest.approx(0.1)


def test_the_document_lists_them_with_a_mark(run: Run) -> None:
    document = run_document(run.pk)
    assert sum(trial["retest"] for trial in document["trials"]) == 6
    (retest,) = document["run"]["retests"]
    assert (retest["key"], retest["fresh"], retest["outcome"]) == ("add", [0, 6], "named")
    assert retest["sentence"] == "failed tonight, and 6 of 6 again"


def test_reports_count_the_first_trials(run: Run) -> None:
    document: dict[str, Any] = run_document(run.pk)
    cases = ElementTree.fromstring(junit_xml([document])).find("testsuite")
    assert cases is not None
    assert (cases.get("tests"), cases.get("failures")) == ("15", "3")
    assert len(list(write_jsonl(run))) == 15


def test_an_eval_suite_result_has_the_first_trials_and_what_fresh_ones_say(run: Run) -> None:
    result: dict[str, Any] = suite_result(suite_run(run))
    (case,) = [each for each in result["cases"] if each["id"] == "add"]
    assert len(case["details"]["trials"]) == 3
    assert result["regressions"] == ["add"]
    assert [each["outcome"] for each in result["evalhub"]["retests"]] == ["named"]


def test_the_digest_keeps_them_apart(run: Run) -> None:
    digest = digest_of(run)
    assert (len(digest.trials), len(digest.retests)) == (15, 6)
    assert digest.outcomes["add"] == ["fail"] * 3
    released = release_result(run)
    assert released is not None
    # Four of five scenarios passed all three.
    assert released.value == pytest.approx(0.8)
    assert comparison_of(run).regressions == ("add",)


def test_the_command_and_the_summary_say_it_in_a_sentence(run: Run) -> None:
    text = summary_lines(run_digest(run.pk, most=60))
    assert "add: failed tonight, and 6 of 6 again." in text
    assert "12/15 passed" in text
    assert text.count("(run again)") == 6
    assert "- `add`: failed tonight, and 6 of 6 again" in run_summary(run)


def test_an_archive_of_an_older_release_has_none() -> None:
    version = suite(provider="cli")
    plain = ran(version, failing(), trials=1)
    (copied,) = import_results(make_project("other"), run_archive([plain.pk]), "runs.zip", by=None)
    assert (retests_of(copied), copied.retest_usd) == ([], 0.0)
