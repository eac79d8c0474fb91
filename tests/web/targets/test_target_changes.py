"""Accepting, rejecting, removing and editing a target."""

from __future__ import annotations

from html import unescape

import pytest

from runs.models import Target
from tests.builders import make_run, make_suite, make_target
from tests.web.screen import parse
from tests.web.targets.pages import ADDRESS, actions, form_of

pytestmark = pytest.mark.one_database


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
    text = parse(signed_in().post(f"{ADDRESS}{target.pk}/remove/", follow=True))
    assert "codex has 1 run, which would lose what they ran on." in text
    assert Target.objects.filter(pk=target.pk).exists()


def test_a_target_of_imported_results_is_not_accepted(signed_in, project):
    target = make_target(project, accepted=False)
    Target.objects.update(provider="imported")
    text = parse(signed_in().post(f"{ADDRESS}{target.pk}/accept/", follow=True))
    assert "exists only in imported results" in text
    assert not Target.objects.get().accepted


def test_it_is_edited_as_its_entry(signed_in, project):
    target = make_target(project)
    client = signed_in()
    assert "provider: mock" in parse(client.get(f"{ADDRESS}{target.pk}/"))
    response = client.post(
        f"{ADDRESS}{target.pk}/", {"definition": "name: local\nprovider: mock\nworkers: 3\n"}
    )
    target.refresh_from_db()
    assert response.url == ADDRESS
    assert (target.workers, target.definition["workers"], target.slots.count()) == (3, 3, 3)
    assert actions() == ["target.change"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: local\nprovider: mok\n", "There is no provider called 'mok'."),
        ("name: other\nprovider: mock\n", "The name has to stay 'local'"),
        ("name: local\nprovider: gemini\napi_key: hunter2\n", "targets/literal-secret"),
        ("- 1\n", "This describes no target."),
        ("", "This field is required."),
        ("name: [", "Changes not saved"),
    ],
    ids=["provider", "name", "secret", "list", "empty", "yaml"],
)
def test_an_invalid_entry_is_reported_and_not_stored(signed_in, project, text, sentence):
    target = make_target(project)
    response = signed_in().post(f"{ADDRESS}{target.pk}/", {"definition": text})
    assert response.status_code == 422
    assert sentence in unescape(response.content.decode())
    target.refresh_from_db()
    assert target.definition == {"name": "local", "provider": "mock"}


@pytest.mark.parametrize("role", ["viewer", "runner", "author"])
@pytest.mark.parametrize("part", ["", "accept/", "remove/"])
def test_only_admins_change_one(signed_in, project, role, part):
    target = make_target(project)
    assert signed_in(role).post(f"{ADDRESS}{target.pk}/{part}").status_code == 403


def test_what_another_admin_rewrote_is_not_replaced_unseen(signed_in, project):
    target = make_target(project)
    client = signed_in()
    address = f"{ADDRESS}{target.pk}/"
    was = form_of(client.get(address)).form_data["was"]
    signed_in("admin").post(address, {"definition": "name: local\nprovider: mock\nworkers: 3\n", "was": was})
    mine = {"definition": "name: local\nprovider: mock\nworkers: 5\n", "was": was}
    refused = client.post(address, mine)
    assert refused.status_code == 422
    field = parse(refused).field("Targets file entry")
    assert "changed this target in the meantime. Save again to overwrite that change." in field.hint
    assert "workers: 5" in field.value
    target.refresh_from_db()
    assert target.workers == 3
    again = {**mine, "was": form_of(refused).form_data["was"]}
    assert client.post(address, again).status_code == 302
    target.refresh_from_db()
    assert target.workers == 5
