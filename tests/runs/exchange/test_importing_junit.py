"""JUnit XML as results: files of real programs against counts by hand, and evalhub's own export."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runs.errors import RequestError
from runs.exchange.exports.exports import export_run
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.preview_results import preview_results
from runs.exchange.results_files.importers import pack_folder
from runs.models import Run, Trial
from tests.builders import make_compared, make_project
from tests.runs.exchange.test_run_archives import uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
FILES = Path(__file__).parents[2] / "files/junit"
INDEX: dict[str, dict[str, Any]] = json.loads((FILES / "index.json").read_text())["files"]


def import_junit(content: str | bytes, file: str = "report.xml") -> Run:
    raw = content.encode() if isinstance(content, str) else content
    (run,) = import_results(make_project(), raw, file, by=None)
    return run


def trials(run: Run, key: str) -> list[Trial]:
    return list(run.trial_set.filter(scenario__key=key).order_by("index"))


def test_every_specimen_is_in_the_index() -> None:
    assert {path.name for path in FILES.iterdir()} - {"index.json"} == set(INDEX)


@pytest.mark.parametrize("name", INDEX)
def test_counts_are_those_made_by_hand(name: str) -> None:
    expected, content = INDEX[name], (FILES / name).read_bytes()
    shown = preview_results(make_project("shown"), content, name)
    run = import_junit(content, name)
    found = {
        "from": expected["from"],
        "suite": run.suite.name,
        "target": run.target.name,
        "version": shown.version,
        "scenarios": run.trial_set.values("scenario").distinct().count(),
        "passed": run.passed,
        "failed": run.failed,
        "errors": run.errors,
        "skipped": shown.runs[0].skipped,
    }
    assert found == expected
    skipped = [text for text in run.warnings if "skipped" in text]
    assert len(skipped) == (expected["skipped"] > 0)


def test_attempts_of_a_rerun_test_are_trials_in_their_order() -> None:
    run = import_junit((FILES / "TEST-shop.CartTest.xml").read_bytes())
    assert [each.outcome for each in trials(run, "shop.CartTest.flaky")] == ["fail", "pass"]
    assert [each.outcome for each in trials(run, "shop.CartTest.crashes")] == ["error"] * 3
    # Only the attempt that the case reports has a time.
    assert [each.seconds for each in trials(run, "shop.CartTest.flaky")] == [None, 0.008]


def test_messages_properties_and_output_are_kept() -> None:
    run = import_junit((FILES / "pytest.xml").read_bytes())
    (failed,) = trials(run, "test_things.test_fails")
    assert failed.scores[0]["message"].startswith("AssertionError: sums are off\nassert (1 + 1) == 3")
    (passed,) = trials(run, "test_things.test_passes")
    assert passed.scores[0]["detail"]["properties"] == {"owner": "ada"}
    (error,) = trials(run, "test_things.test_error")
    assert (error.error_kind, error.scores) == ("imported", [])
    assert error.error.startswith('failed on setup with "RuntimeError: no database"')


def test_what_a_test_printed_is_its_answer() -> None:
    run = import_junit((FILES / "unittest.xml").read_bytes())
    assert [each.answer for each in trials(run, "A.test_ok")] == ["out"]


def test_the_files_of_a_surefire_folder_are_one_run(tmp_path: Path) -> None:
    reports = tmp_path / "surefire-reports"
    reports.mkdir()
    for name in ("TEST-shop.CartTest.xml", "TEST-shop.PriceTest.xml"):
        (reports / name).write_bytes((FILES / name).read_bytes())
    (reports / "shop.CartTest.txt").write_text("Tests run: 5")
    run = import_junit(pack_folder(reports), "surefire-reports")
    assert (run.suite.name, run.trials, run.passed, run.failed, run.errors) == (
        "surefire-reports",
        10,
        3,
        4,
        3,
    )


def test_files_that_are_not_junits_are_counted_and_named(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "TEST-a.xml").write_bytes((FILES / "TEST-shop.PriceTest.xml").read_bytes())
    (reports / "TEST-b.xml").write_text("<checkstyle/>")
    run = import_junit(pack_folder(reports), "reports")
    assert run.warnings == ["1 of 2 XML files left out, because they aren't JUnit's: reports/TEST-b.xml."]


GO = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="0" time="0.5">
  <testsuite tests="4" failures="1" time="0.5" name="example.org/shop" timestamp="2026-11-01T10:00:00+01:00">
    <properties><property name="go.version" value="go1.25.1 linux/amd64"></property></properties>
    <testcase classname="example.org/shop" name="TestAdd" time="0.100000"></testcase>
    <testcase classname="example.org/shop" name="TestAdd" time="0.200000">
      <failure message="Failed" type="">=== RUN TestAdd</failure>
    </testcase>
    <testcase classname="example.org/shop" name="TestAdd/twice" time="1,234.5"></testcase>
    <testcase classname="example.org/shop" name="TestSlow" time="0.0"><skipped message="short"></skipped></testcase>
  </testsuite>
</testsuites>"""


def test_results_of_one_test_that_ran_twice_are_its_trials() -> None:
    """As `gotestsum --junitfile` writes `-count=2`."""
    run = import_junit(GO)
    assert (run.suite.name, run.target.name, run.trials, run.passed) == ("example.org/shop", "go test", 3, 2)
    assert run.started == datetime(2026, 11, 1, 9, tzinfo=UTC)
    assert [each.seconds for each in trials(run, "example.org/shop.TestAdd")] == [0.1, 0.2]
    assert [each.seconds for each in trials(run, "example.org/shop.TestAdd/twice")] == [1234.5]


@pytest.mark.parametrize(
    ("file", "counts"),
    [("googletest", (1, 1, 1)), ("googletest-older-skip", (1, 0, 1)), ("ctest", (1, 3, 3))],
)
def test_what_did_not_run_is_no_pass(file: str, counts: tuple[int, ...]) -> None:
    content = (FILES.parent / f"cases/54/{file}.xml").read_bytes()
    shown = preview_results(make_project("shown"), content, "report.xml").runs[0]
    run = import_junit(content)
    assert (run.passed, run.failed, shown.skipped) == counts


def test_a_retry_is_a_trial_and_a_broken_clean_up_is_none() -> None:
    """As pytest writes a failure, a teardown error, and the failing and broken attempts of a retried test."""
    case = '<testcase classname="c" name="{}">{}</testcase>'
    failure, error = "<failure message='f'/>", "<error message='boom'/>"
    torn = "<error message='failed on teardown with \"E\"'/>"
    rows = [
        ("a", failure),
        ("b", failure),
        ("a", torn),
        ("b", error),
        ("b", failure),
        ("b", torn),
        ("d", torn),
    ]
    run = import_junit(f"<testsuite>{''.join(case.format(*row) for row in rows)}</testsuite>")
    assert [each.outcome for each in trials(run, "c.a")] == ["fail"]
    assert [each.outcome for each in trials(run, "c.b")] == ["fail", "error", "fail"]
    assert [each.outcome for each in trials(run, "c.d")] == ["error"]


def test_properties_name_what_ran() -> None:
    named = "".join(
        f'<property name="evalhub.{name}" value="{value}"/>'
        for name, value in (("suite", "shop"), ("target", "codex"), ("model", "gpt-x"))
    )
    run = import_junit(GO.replace("<properties>", f"<properties>{named}"))
    assert (run.suite.name, run.target.name, run.model) == ("shop", "codex", "gpt-x")


def test_an_export_comes_back_with_its_trials() -> None:
    version = uploaded(make_project("theirs"))
    original = make_compared(version, {"a": "pass", "b": "fail", "c": "error"}, trials=2)
    copy = import_junit(export_run(original.pk, "junit"))
    assert (copy.suite.name, copy.target.name, copy.model) == ("notes", original.target.name, original.model)
    assert (copy.trials, copy.passed, copy.failed, copy.errors) == (6, 2, 2, 2)
    indices = copy.trial_set.filter(scenario__key="b").values_list("index", flat=True)
    assert sorted(indices) == [0, 1]
    assert copy.shown_id == str(original.uuid)


def test_an_export_beside_its_original_is_not_stored() -> None:
    project = make_project()
    original = make_compared(uploaded(project), {"a": "pass", "b": "fail"}, trials=2)
    content = export_run(original.pk, "junit")
    raw = content.encode() if isinstance(content, str) else content
    assert import_results(project, raw, "report.xml", by=None) == (original,)
    assert Run.objects.count() == 1


def test_long_names_stay_apart() -> None:
    cases = "".join(f'<testcase classname="c" name="{"n" * 300}{end}"/>' for end in "ab")
    run = import_junit(f'<testsuite name="long">{cases}</testsuite>')
    assert run.trial_set.values("scenario").distinct().count() == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<testsuites><testsuite>", r"report\.xml: line 1: the XML is broken: no element found"),
        ('<testsuite name="none" tests="0"/>', "no test case in it"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>', "no results found"),
        ('<testsuite/><!DOCTYPE t [<!ENTITY a "b">]>', r"report\.xml: line 1: the XML is broken"),
        (
            '<?xml version="1.0"?><!-- a --><!DOCTYPE t [<!ENTITY a "b">]><!-- b --><testsuite/>',
            "no results found",
        ),
    ],
    ids=["cut", "no case", "entities", "late entities", "hidden entities"],
)
def test_a_file_without_results_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        import_junit(text)
    assert not Run.objects.exists()
