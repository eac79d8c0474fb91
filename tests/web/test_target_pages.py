"""Targets: the list, the import, one of them, and the check."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from runs.checking import carry_out_check
from runs.models import Target, TargetCheck, Worker
from tests.builders import make_project, make_run, make_suite, make_target, make_trial

ADDRESS = "/p/tools/targets/"
FILE = b"targets:\n  - name: local\n    provider: mock\n    workers: 2\n    model: gpt-5\n    judge_target: judge\n"


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch, settings):
    """Send wake-ups to a broker in memory."""
    settings.CELERY_APP = "tests.web.conftest.SILENT_APP"


@pytest.fixture
def served(settings):
    """Many people, not one owner."""
    settings.EMBEDDED = False


def bring(client, content=FILE, name="targets.yaml", **headers):
    return client.post(f"{ADDRESS}import/", {"file": SimpleUploadedFile(name, content)}, headers=headers)


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def test_it_lists_targets_with_what_was_run(signed_in, project):
    make_target(project, "idle")
    run = make_run(make_suite(project), target=make_target(project, "codex", workers=4))
    make_trial(run)
    make_trial(run, outcome="error")
    Worker.objects.create(name="eval-1", lanes=4, sandbox="bubblewrap")
    response = signed_in("viewer").get(ADDRESS)
    assert [(row.target.name, row.trials, row.errors) for row in response.context["rows"]] == [
        ("codex", 2, 1),
        ("idle", 0, 0),
    ]
    text = response.content.decode()
    assert "eval-1" in text and "bubblewrap" in text
    assert "not checked" in text


@pytest.mark.parametrize(
    ("lanes", "silent", "state"),
    [(4, 0, "working"), (0, 0, "idle"), (4, 5, "lost"), (0, 5, "lost")],
    ids=["working", "idle", "lost at work", "lost idle"],
)
def test_it_says_what_a_worker_does(signed_in, lanes, silent, state):
    Worker.objects.create(name="eval-1", lanes=lanes, seen=timezone.now() - timedelta(minutes=silent))
    text = signed_in("viewer").get(ADDRESS).content.decode()
    badges = [word for word in ("working", "idle", "lost") if f">{word}</span>" in text]
    assert badges == [state]


def test_it_says_what_to_do_without_targets(signed_in):
    assert "No targets yet" in signed_in().get(ADDRESS).content.decode()


def test_it_shows_only_this_project(signed_in, project):
    make_target(make_project("other"), "secret-target")
    assert "secret-target" not in signed_in().get(ADDRESS).content.decode()


def test_an_admin_imports_at_once(signed_in, served):
    text = bring(signed_in()).content.decode()
    target = Target.objects.get()
    assert target.accepted
    assert target.slots.count() == 2
    assert "<strong>1 target</strong> of targets.yaml: local." in text
    assert "gpt-5" in text


def test_an_author_proposes(signed_in, served):
    text = bring(signed_in("author")).content.decode()
    assert not Target.objects.get().accepted
    assert "1 proposed" in text


def test_an_author_of_an_embedded_evalhub_imports_at_once(signed_in):
    bring(signed_in("author"))
    assert Target.objects.get().accepted


@pytest.mark.parametrize("role", ["viewer", "runner"])
def test_nobody_below_an_author_imports(signed_in, role):
    assert bring(signed_in(role)).status_code == 403


def test_problems_are_told_with_line_fix_and_the_quoted_line(signed_in):
    response = bring(signed_in(), FILE.replace(b"mock", b"mok"))
    text = response.content.decode()
    assert response.status_code == 422
    assert "targets.yaml was not imported" in text
    assert '<span data-line="3" class="here">    provider: <mark>mok</mark></span>' in text
    assert "targets/unknown-provider" in text
    assert not Target.objects.exists()


def test_htmx_gets_the_lists_alone(signed_in):
    text = bring(signed_in(), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in text and "local" in text


def test_no_file_is_told(signed_in):
    response = signed_in().post(f"{ADDRESS}import/", {})
    assert response.status_code == 422
    assert "Choose a file first." in response.content.decode()


def test_an_admin_accepts_a_proposal(signed_in, project):
    target = make_target(project, accepted=False)
    signed_in().post(f"{ADDRESS}{target.pk}/accept/")
    assert Target.objects.get().accepted
    assert actions() == ["target.accept"]


def test_an_admin_rejects_a_proposal(signed_in, project):
    target = make_target(project, accepted=False)
    signed_in().post(f"{ADDRESS}{target.pk}/remove/")
    assert not Target.objects.exists()
    assert actions() == ["target.reject"]


def test_a_target_with_runs_is_not_removed(signed_in, project):
    target = make_target(project, "codex")
    make_run(make_suite(project), target=target)
    text = signed_in().post(f"{ADDRESS}{target.pk}/remove/", follow=True).content.decode()
    assert "codex has 1 run, which would lose what they ran on." in text
    assert Target.objects.filter(pk=target.pk).exists()


def test_a_target_of_imported_results_is_not_accepted(signed_in, project):
    target = make_target(project, accepted=False)
    Target.objects.update(provider="imported")
    text = signed_in().post(f"{ADDRESS}{target.pk}/accept/", follow=True).content.decode()
    assert "known from imported results only" in text
    assert not Target.objects.get().accepted


def test_it_is_edited_as_its_entry(signed_in, project):
    target = make_target(project)
    client = signed_in()
    assert "provider: mock" in client.get(f"{ADDRESS}{target.pk}/").content.decode()
    response = client.post(
        f"{ADDRESS}{target.pk}/", {"definition": "name: local\nprovider: mock\nworkers: 3\n"}
    )
    target.refresh_from_db()
    assert response.url == ADDRESS
    assert (target.workers, target.definition["workers"], target.slots.count()) == (3, 3, 3)
    assert actions() == ["target.change"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: local\nprovider: mok\n", "There is no provider called 'mok'."),
        ("name: other\nprovider: mock\n", "The name has to stay 'local'"),
        ("name: local\nprovider: gemini\napi_key: hunter2\n", "targets/literal-secret"),
        ("- 1\n", "This describes no target."),
        ("", "This field is required."),
        ("name: [", "This was not kept"),
    ],
    ids=["provider", "name", "secret", "list", "empty", "yaml"],
)
def test_an_entry_that_cannot_be_is_told_and_not_kept(signed_in, project, text, said):
    target = make_target(project)
    response = signed_in().post(f"{ADDRESS}{target.pk}/", {"definition": text})
    assert response.status_code == 422
    assert said in unescape(response.content.decode())
    target.refresh_from_db()
    assert target.definition == {"name": "local", "provider": "mock"}


@pytest.mark.parametrize("role", ["viewer", "runner", "author"])
@pytest.mark.parametrize("part", ["", "accept/", "remove/"])
def test_only_admins_change_one(signed_in, project, role, part):
    target = make_target(project)
    assert signed_in(role).post(f"{ADDRESS}{target.pk}/{part}").status_code == 403


def test_a_check_waits_for_a_worker_and_shows_its_answer(signed_in, project):
    target = make_target(project)
    client = signed_in("runner")
    htmx = {"HX-Request": "true"}
    waiting = client.post(f"{ADDRESS}{target.pk}/check/", headers=htmx).content.decode()
    assert 'hx-trigger="every 1s"' in waiting
    carry_out_check(TargetCheck.objects.get().pk)
    text = client.get(f"{ADDRESS}{target.pk}/check/", headers=htmx).content.decode()
    assert "ready" in text and "hx-trigger" not in text


def test_a_check_without_a_script_leads_to_the_list(signed_in, project):
    target = make_target(project)
    assert signed_in().post(f"{ADDRESS}{target.pk}/check/").url == ADDRESS
    assert signed_in().get(f"{ADDRESS}{target.pk}/check/").url == ADDRESS


def test_viewers_do_not_ask(signed_in, project):
    assert signed_in("viewer").post(f"{ADDRESS}{make_target(project).pk}/check/").status_code == 403


def test_what_is_wrong_is_said_with_the_worker(signed_in, project):
    target = make_target(project)
    sentence = "No executable <codex> on PATH. Install it."
    TargetCheck.objects.create(
        target=target, at=timezone.now(), worker="eval-2", available=False, sentence=sentence
    )
    text = signed_in().get(ADDRESS).content.decode()
    assert "cannot start" in text
    assert "No executable &lt;codex&gt; on PATH. Install it." in text
    assert "Found on eval-2." in text


def test_a_question_that_nobody_answers_is_given_up(signed_in, project):
    TargetCheck.objects.create(target=make_target(project), asked=timezone.now() - TargetCheck.PATIENCE)
    text = signed_in().get(ADDRESS).content.decode()
    assert "No worker answered." in text and "hx-trigger" not in text


def test_another_projects_target_is_not_found(signed_in):
    target = make_target(make_project("other"))
    for part in ("", "check/"):
        assert signed_in().get(f"{ADDRESS}{target.pk}/{part}").status_code == 404


def test_a_suites_targets_file_is_taken_over_by_a_button(signed_in, project):
    version = make_suite(project, name="Basics")
    version.targets_text, version.targets_file = FILE.decode(), "targets.yaml"
    version.save()
    client = signed_in()
    assert "Take over its targets" in client.get("/p/tools/suites/basics/").content.decode()
    assert client.post("/p/tools/suites/basics/targets/").status_code == 200
    assert Target.objects.get().name == "local"


def test_a_suite_without_a_targets_file_says_so(signed_in, project):
    make_suite(project, name="Basics")
    text = signed_in().post("/p/tools/suites/basics/targets/", follow=True).content.decode()
    assert "Basics brought no targets file." in text


def test_the_list_makes_as_many_queries_for_many_targets(signed_in, project, django_assert_max_num_queries):
    for number in range(6):
        TargetCheck.objects.create(target=make_target(project, f"t{number}"))
    client = signed_in()
    # Session, user, access, targets, checks, sums, workers, the menu's projects.
    with django_assert_max_num_queries(9):
        client.get(ADDRESS)
