"""A job that measured nothing is red: exit codes, JUnit and the summary say why."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from evalhub.teams.access import default_project
from runs.exchange.exports.summary_markdown import run_summary
from runs.models import Run
from runs.results.run_filters import RunListFilters
from runs.results.run_page.list_views import run_list_table
from tests.builders import close, make_run, make_suite, make_trial
from tests.commands.calling import call
from tests.runs.carrying import shell_target, suite_of


@pytest.mark.django_db(transaction=True)
def test_a_required_baseline_that_is_missing_ends_with_4() -> None:
    project = default_project()
    version = suite_of(project, one={"prompt": "true", "criteria": {"gates": []}})
    words = ("run_scenarios", version.suite.slug, "--target", shell_target(project).name, "--now")
    ended = call(*words, "--require-baseline")
    assert ended.code == 4
    assert "has no baseline, and --require-baseline asks for one" in ended.err
    assert call(*words, "--require-baseline").code == 0


@pytest.mark.django_db
def test_the_summary_names_the_reason_of_single_errors() -> None:
    run = make_run(make_suite(default_project(), ["one", "two"], name="small"))
    make_trial(run, "one", outcome="error", error="The endpoint answered 401.", error_kind="endpoint")
    make_trial(run, "two")
    close(run)
    assert "⚠ 1 trial hit an error: `The endpoint answered 401.`" in run_summary(run)


@pytest.mark.django_db
def test_the_csv_holds_the_reason_of_a_missing_verdict() -> None:
    project = default_project()
    run = make_run(make_suite(project, ["one"], name="small"))
    make_trial(run, "one", outcome="error", error="Cut.", error_kind="endpoint")
    run = Run.objects.get(pk=close(run).pk)
    run.errors = 1
    run.save(update_fields=["errors"])
    table = run_list_table(project, RunListFilters())
    (row,) = table.rows
    assert dict(zip(table.header, row, strict=True))["verdict_reason"] == "errors"


@pytest.mark.django_db(transaction=True)
def test_a_run_that_cannot_be_prepared_ends_with_4(tmp_path: Path) -> None:
    project = default_project()
    gate = {
        "gates": [{"type": "file_exists", "path": "out.txt"}],
        "tool": {"binary": "sh", "health_check": "exit 9"},
    }
    version = suite_of(project, one={"prompt": "true", "criteria": gate})
    words = ("run_scenarios", version.suite.slug, "--target", shell_target(project).name, "--now")
    assert call(*words).code == 1
    out = call(*words, "--fail-on-regression", "--junit-file", str(tmp_path / "junit.xml"))
    assert out.code == 4
    assert "measured nothing because it did not start" in out.err
    suite = parse(tmp_path / "junit.xml").find("testsuite")
    assert suite is not None and (suite.get("tests"), suite.get("errors")) == ("1", "1")
