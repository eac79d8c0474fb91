"""A generated history: every kind of data, in a project that is marked as demo data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from evalhub.teams.models import Project
from runs.models import Artifact, Baseline, Change, CommandRecord, JudgingRecord, Run, RunMeasure, Trial
from scenarios.models import Suite
from tests.builders import make_member, make_project
from tests.history.preparing import prepare
from tests.history.second_process import map_ahead
from tests.history.storing import make_history
from tests.history.story import chapters
from tests.kept_rows import kept_rows
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.slow

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def made(runs: int, trials: int = 20) -> None:
    make_history(runs=runs, trials=trials)


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    # Every suite runs on each target twice, the second time with a baseline.
    yield from kept_rows(django_db_blocker, lambda: made(24))


@pytest.fixture
def history(stored: None, db: None) -> Project:
    return Project.objects.get(slug="demo-data")


def test_the_projects_name_marks_it_as_demo_data(history: Project) -> None:
    assert history.name.startswith("Demo data")


def test_it_refuses_a_project_that_may_have_real_results(db: None) -> None:
    make_project("tools")
    with pytest.raises(ValueError, match="may have real results"):
        make_history("tools", runs=1, trials=1)
    assert not Run.objects.filter(project__slug="tools").exists()


def test_counters_agree_with_the_trials(history: Project) -> None:
    for run in Run.objects.filter(project=history):
        outcomes = Counter(run.trial_set.values_list("outcome", flat=True))
        assert (run.passed, run.failed, run.errors) == (outcomes["pass"], outcomes["fail"], outcomes["error"])
        assert (run.trials, run.open, run.state) == (20, 0, "finished")


def test_the_history_has_every_kind_of_data(history: Project) -> None:
    runs = Run.objects.filter(project=history)
    assert Suite.objects.filter(project=history).count() == 4
    assert runs.values("target").distinct().count() == 3
    assert runs.values("tool_version").distinct().count() > 4
    assert runs.values("guidance").distinct().count() == 8
    for kept in (Baseline, Change, CommandRecord, JudgingRecord, Artifact):
        assert kept.objects.exists(), kept.__name__


PAGES = ("", "runs/", "runs/new/", "trends/", "regressions/", "reviews/", "reviews/calibration/", "usage/")


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/p/demo-data/{path}").status_code == 200, path
    return len(queries)


def test_pages_of_a_history_take_few_queries(history: Project) -> None:
    client = Client()
    client.force_login(make_member(history, "admin"))
    runs = [*Run.objects.filter(project=history).order_by("pk")]
    assert any(run.errors for run in runs)
    for run in runs:
        # Its figures are computed from its trials; what broke takes five more, a baseline of another version two.
        assert queries_of(client, f"runs/{run.pk}/") <= 23, run
    newest = runs[-1]
    older = next(run for run in runs if (run.suite_id, run.target_id) == (newest.suite_id, newest.target_id))
    trial = newest.trial_set.earliest("pk")
    for path in (*PAGES, f"trials/{trial.pk}/", f"compare/?runs={older.pk},{newest.pk}"):
        # The home reads more where a line regressed.
        assert queries_of(client, path) <= 15, path


def test_gates_commands_and_judge_of_a_trial_agree(history: Project) -> None:
    seen = set()
    for trial in (
        Trial.objects.filter(run__project=history).exclude(outcome="error").prefetch_related("judgings")
    ):
        gates = {score["name"]: score["passed"] for score in trial.scores if score["layer"] == "gates"}
        commands = list(trial.commands.values_list("line", "failed"))
        (judging,) = trial.judgings.all()
        statements = {text for kind in ("negatives", "positives") for text in judging.content.get(kind) or ()}
        written = any(">result.json" in line and not failed for line, failed in commands)
        assert gates["file_exists"] == written
        assert gates["file_exists"] or not gates["file_contains"]
        assert judging.passed == (trial.outcome == "pass") == all(gates.values())
        assert ("Never wrote result.json." in statements) == (not written)
        assert any(failed for _, failed in commands) or not statements & {
            "Repeated a failing command without changing it.",
            "Failed commands without opening help.",
            "Opened the help of the subcommand after a failure.",
        }
        assert not any(failed for _, failed in commands) or trial.detail["interaction"]["error_rate"] > 0
        seen.add(tuple(gates.values()))
    assert len(seen) == 4


def test_rollups_agree_with_the_trials(history: Project) -> None:
    run = Run.objects.filter(project=history).first()
    rolled = RunMeasure.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="pass")
    counted = Trial.objects.filter(run=run).exclude(outcome="error")
    assert rolled.n == counted.values("scenario").distinct().count()
    assert rolled.passed == run.passed


def test_a_transcript_has_the_counted_commands(history: Project) -> None:
    trial = Trial.objects.filter(run__project=history, outcome="fail", commands__failed=True).first()
    assert trial is not None
    called = [event.command for event in trial.transcript.unpack().events if event.command]
    # Stored commands have no space after a redirection.
    assert set(trial.commands.values_list("line", flat=True)) <= {line.replace("> ", ">") for line in called}


def test_a_second_call_adds_to_the_same_project(history: Project) -> None:
    made(1)
    assert Run.objects.filter(project=history).count() == 25
    assert Suite.objects.filter(project=history).count() == 4


def test_the_same_seed_gives_the_same_history() -> None:
    assert list(chapters(30, seed=7, now=NOW)) == list(chapters(30, seed=7, now=NOW))
    assert list(chapters(30, seed=7, now=NOW)) != list(chapters(30, seed=8, now=NOW))


def test_a_second_process_prepares_the_same_runs() -> None:
    story = list(chapters(4, seed=7, now=NOW))
    prepare_chapter = partial(prepare, trials=25, seed=7)
    assert list(map_ahead(prepare_chapter, story, ahead=1)) == list(map(prepare_chapter, story))


def test_a_run_depends_on_its_chapter_and_the_seed_only() -> None:
    first, second = chapters(2, seed=7, now=NOW)
    alone = prepare(second, trials=25, seed=7)
    assert [prepare(each, trials=25, seed=7) for each in (first, second)][1] == alone
    assert prepare(second, trials=25, seed=8) != alone


def test_pass_rates_drop_with_the_version_that_renamed_a_flag() -> None:
    skills: dict[str, list[float]] = {}
    for chapter in chapters(1200, seed=1, now=NOW):
        skills.setdefault(chapter.tool_version.split()[-1], []).append(chapter.skill)
    means = {version: sum(found) / len(found) for version, found in skills.items()}
    assert means["2.4.0"] < means["2.3.1"] < means["3.0.0"]
