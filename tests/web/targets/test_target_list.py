"""The list of targets and of workers, and the check of one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import TargetCheck, Worker
from tests.builders import make_project, make_run, make_suite, make_target, make_trial
from tests.runs.jobs import do_job
from tests.web.screen import parse
from tests.web.targets.pages import ADDRESS

pytestmark = pytest.mark.one_database


def test_it_lists_targets_with_what_was_run(signed_in, project):
    make_target(project, "idle")
    run = make_run(make_suite(project), target=make_target(project, "codex", workers=4))
    make_trial(run)
    make_trial(run, outcome="error")
    Worker.objects.create(name="eval-1", lanes=4, sandbox="bubblewrap")
    text = parse(signed_in("viewer").get(ADDRESS))
    rows = text.table("Targets").rows
    assert [(row.header, row.cell("Trials, 7 days").text, row.cell("Errors").text) for row in rows] == [
        ("codex", "2", "! 1"),
        ("idle", "0", "0"),
    ]
    assert "eval-1" in text and "bubblewrap" in text
    assert "not checked" in text


def test_it_shows_labels_of_targets_and_workers(signed_in, project):
    make_target(project, "codex", labels=["gpu", "macos"])
    Worker.objects.create(name="eval-1", labels=["gpu", "linux"])
    text = parse(signed_in().get(ADDRESS))
    assert "needs gpu, macos" in text
    assert text.table("Workers").row("eval-1").cell("Labels").text == "gpu, linux"


@pytest.mark.parametrize(
    ("lanes", "silent", "state"),
    [(4, 0, "working"), (0, 0, "idle"), (4, 5, "lost"), (0, 5, "lost")],
    ids=["working", "idle", "lost at work", "lost idle"],
)
def test_it_shows_a_workers_state(signed_in, lanes, silent, state):
    Worker.objects.create(name="eval-1", lanes=lanes, seen=timezone.now() - timedelta(minutes=silent))
    page = parse(signed_in("viewer").get(ADDRESS))
    assert page.badges == [state]


def test_an_empty_list_says_how_to_import_targets(signed_in):
    assert "No targets yet" in parse(signed_in().get(ADDRESS))


def test_it_shows_only_this_project(signed_in, project):
    make_target(make_project("other"), "secret-target")
    assert "secret-target" not in parse(signed_in().get(ADDRESS))


def test_a_check_waits_for_a_worker_and_shows_its_answer(signed_in, project):
    target = make_target(project)
    client = signed_in("runner")
    htmx = {"HX-Request": "true"}
    waiting = client.post(f"{ADDRESS}{target.pk}/check/", headers=htmx).content.decode()
    assert 'hx-trigger="every 1s"' in waiting
    do_job(TargetCheck.objects.get())
    text = client.get(f"{ADDRESS}{target.pk}/check/", headers=htmx).content.decode()
    assert "ready" in text and "hx-trigger" not in text


def test_a_check_without_a_script_leads_to_the_list(signed_in, project):
    target = make_target(project)
    assert signed_in().post(f"{ADDRESS}{target.pk}/check/").url == ADDRESS
    assert signed_in().get(f"{ADDRESS}{target.pk}/check/").url == ADDRESS


def test_viewers_do_not_ask(signed_in, project):
    assert signed_in("viewer").post(f"{ADDRESS}{make_target(project).pk}/check/").status_code == 403


def test_a_failed_check_shows_its_worker(signed_in, project):
    target = make_target(project)
    sentence = "No executable <codex> on PATH. Install it."
    TargetCheck.objects.create(
        target=target, at=timezone.now(), worker="eval-2", available=False, sentence=sentence
    )
    text = signed_in().get(ADDRESS).content.decode()
    assert "cannot start" in text
    assert "No executable &lt;codex&gt; on PATH. Install it." in text
    assert "Checked on eval-2." in text


def test_an_unanswered_check_times_out(signed_in, project):
    TargetCheck.objects.create(target=make_target(project), asked=timezone.now() - TargetCheck.PATIENCE)
    text = signed_in().get(ADDRESS).content.decode()
    assert "No worker answered." in text and "hx-trigger" not in text


def test_another_projects_target_is_not_found(signed_in):
    target = make_target(make_project("other"))
    for part in ("", "check/"):
        assert signed_in().get(f"{ADDRESS}{target.pk}/{part}").status_code == 404


def test_the_list_makes_as_many_queries_for_many_targets(signed_in, project, django_assert_max_num_queries):
    for number in range(6):
        TargetCheck.objects.create(target=make_target(project, f"t{number}"))
    client = signed_in()
    # Session, user, access, targets, checks, sums, workers, the menu's projects.
    with django_assert_max_num_queries(9):
        client.get(ADDRESS)
