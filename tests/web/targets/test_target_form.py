"""The form of a new target, which writes its YAML."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from django.utils import timezone

from evalhub.teams.models import AuditEvent
from runs.models import Target, TargetCheck
from runs.sandbox import worker_settings
from runs.sandbox.sandbox import Machine, Policy
from runs.sandbox.target_roots import TargetRoots
from runs.targets import edits, hidden_programs
from runs.targets.definitions import dump_yaml
from runs.targets.target_page import edit_views
from runs.targets.target_page.edit_views import KINDS
from tests.builders import make_target
from tests.web.screen import parse
from tests.web.targets.pages import ADDRESS, actions

pytestmark = pytest.mark.one_database

NEW = f"{ADDRESS}new/"


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_target_has_a_form_for_every_provider(signed_in, kind):
    page = parse(signed_in().get(f"{NEW}?provider={kind}"))
    assert page.field("Name") is not None


def test_a_new_target_is_added_by_its_form(signed_in, project):
    given = {"kind": "litellm", "name": "local", "save": "yes"}
    more = {
        "model": "openai/llama",
        "base_url": "http://localhost:8000/v1",
        "api_key": "OUR_API_KEY",
        "workers": "2",
    }
    response = signed_in().post(NEW, given | more)
    target = Target.objects.get()
    assert response.url == ADDRESS
    assert target.definition == {
        "name": "local",
        "provider": "litellm",
        "model": "openai/llama",
        "base_url": "http://localhost:8000/v1",
        "api_key": "${{ OUR_API_KEY }}",
        "workers": 2,
    }
    assert (target.accepted, target.slots.count(), actions()) == (True, 2, ["target.change"])


@pytest.mark.parametrize(
    ("more", "label", "sentence"),
    [
        ({"workers": "many"}, "Trials at once", "Input should be a valid integer"),
        ({"command_template": ""}, "Command", "needs the field 'command_template'"),
        ({"command_template": "x {NOPE}"}, "Command", "there is no placeholder {NOPE}"),
        ({"env": "API_KEY=sk-0123456789abcdef0123456789"}, "Variables", "secrets are never stored"),
        ({"env": "no pair"}, "Variables", "This is not valid here"),
        ({"healthcheck": "{type: none}"}, "Health check", "This is not valid here"),
        ({"cwd": "/etc"}, "Working folder", "/etc"),
        ({"name": "taken"}, "Name", "There is already a target called 'taken'."),
        ({"name": ""}, "Name", "This field is required."),
    ],
    ids=["number", "missing", "placeholder", "secret", "pairs", "health check", "path", "taken", "no name"],
)
def test_a_problem_is_shown_at_its_field(signed_in, project, more, label, sentence):
    make_target(project, "taken")
    given = {"kind": "cli", "name": "mine", "command_template": "agent {PROMPT}", "save": "anyway"}
    response = signed_in().post(NEW, given | more)
    assert response.status_code == 422
    field = parse(response).field(label)
    assert sentence in field.hint and not field.is_folded
    assert field["aria-invalid"] == "true"
    assert Target.objects.count() == 1


def test_the_form_goes_on_as_yaml(signed_in, project):
    given = {"kind": "mock", "name": "new", "response": "hi", "show": "yaml"}
    text = parse(signed_in().post(NEW, given)).field("Targets file entry").value
    assert text == "name: new\nprovider: mock\nresponse: hi\n"
    assert not Target.objects.exists()


def test_a_default_that_is_a_sentence_ends_with_one_period(signed_in):
    field = parse(signed_in().get(f"{NEW}?provider=mock")).field("Response")
    assert field.hint.startswith("Default: This is the mock provider's answer.")
    assert field.hint.endswith("targets file.") and ".." not in field.hint


def test_an_author_of_a_served_evalhub_proposes_and_cannot_try(signed_in, settings):
    settings.EMBEDDED = False
    given = {"kind": "mock", "name": "new"}
    client = signed_in("author")
    assert "Try it" not in parse(client.get(f"{NEW}?provider=mock"))
    assert client.post(NEW, given | {"try": "yes"}).status_code == 403
    client.post(NEW, given)
    assert not Target.objects.get().accepted


def merges(levels: int) -> str:
    """Return YAML whose every level merges the one before ten times."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, levels + 1)]
    return "\n".join(lines)


@pytest.mark.sampled(2)
@pytest.mark.hostile
@pytest.mark.usefixtures("read_elsewhere")
@pytest.mark.parametrize(
    "text",
    [merges(9), "[" * 5_000, "a: " + "9" * 5_000, "a: !!timestamp 9999-99-99", "a: 2020-99-99", "? [a]\n: b"],
    ids=["merges", "depth", "digits", "timestamp", "date", "key"],
)
def test_hostile_yaml_in_a_field_is_answered_soon(signed_in, text):
    given = {"kind": "cli", "name": "x", "command_template": "true", "healthcheck": text}
    started = time.thread_time()
    assert signed_in().post(NEW, given).status_code in (302, 422)
    assert time.thread_time() - started < 5


@pytest.fixture
def agent(tmp_path):
    """Return a program that no sandbox shows."""
    program = tmp_path / "agents" / "mine" / "bin" / "run"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho hi\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def sandboxed(monkeypatch):
    """Contain commands as bubblewrap does, whatever this machine has."""
    before = worker_settings.containment()
    contained = replace(before, policy=Policy.PREFER, machine=Machine("/usr/bin/bwrap", 0, limits=True))
    for module in (edits, hidden_programs, edit_views):
        monkeypatch.setattr(module, "containment", lambda: contained)


def filled(command, **more):
    return {"kind": "cli", "name": "mine", "command_template": str(command), **more}


def test_a_save_that_cannot_start_says_so_and_offers_the_folder(signed_in, project, agent, sandboxed):
    client, folder = signed_in(), agent.parent.parent
    refused = client.post(NEW, filled(f"{agent} {{PROMPT}}", save="yes"))
    page = parse(refused)
    assert refused.status_code == 422
    assert not Target.objects.exists()
    assert f"The sandbox hides {agent}, so the command won’t find it." in page
    assert f"Let it read {folder}, and save" in page.buttons
    client.post(NEW, filled(f"{agent} {{PROMPT}}", save="show-folders"))
    target = Target.objects.get()
    assert target.definition["read_folders"] == [str(folder)]
    again = client.post(f"{ADDRESS}{target.pk}/", {"definition": dump_yaml(target.definition), "save": "yes"})
    assert again.status_code == 302, "what is shown already is not asked for again"


def test_it_can_be_saved_anyway(signed_in, project, agent, sandboxed):
    signed_in().post(NEW, filled(agent, save="anyway"))
    assert "read_folders" not in Target.objects.get().definition


def test_a_folder_outside_the_operators_is_refused_in_a_sentence(
    signed_in, project, agent, sandboxed, monkeypatch
):
    contained = replace(edits.containment(), targets=TargetRoots.of(["/srv/agents"]))
    for module in (edits, hidden_programs, edit_views):
        monkeypatch.setattr(module, "containment", lambda: contained)
    client = signed_in()
    page = parse(client.post(NEW, filled(agent, save="yes")))
    assert "A target may not show its commands" in page
    assert "EVALHUB_TARGET_ROOTS" in page
    assert not any(each.startswith("Let it read") for each in page.buttons)
    forced = client.post(NEW, filled(agent, save="show-folders", read_folders=str(agent.parent)))
    assert forced.status_code == 422
    assert not Target.objects.exists()


def test_an_admin_shows_a_program_in_one_press(signed_in, project, agent, sandboxed):
    target = make_target(
        project,
        "mine",
        definition={"name": "mine", "provider": "cli", "command_template": str(agent)},
        provider="cli",
    )
    TargetCheck.objects.create(target=target, at=timezone.now(), worker="w", available=False, sentence="No.")
    label, path = f"Let mine read {agent.parent.parent}", f"{ADDRESS}{target.pk}/show-program/"
    assert label not in parse(signed_in("author").get(ADDRESS)).buttons
    assert signed_in("author").post(path).status_code == 403
    client = signed_in("admin")
    assert label in parse(client.get(ADDRESS)).buttons
    shown = parse(client.post(path, follow=True))
    target.refresh_from_db()
    assert target.definition["read_folders"] == [str(agent.parent.parent)]
    assert label not in shown.buttons
    event = AuditEvent.objects.get(action="target.change")
    assert event.detail["read_folders"] == str(agent.parent.parent)
    assert "The sandbox hides no file of mine" in parse(client.post(path, follow=True))
