"""A targets file that is uploaded over REST with its suite."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Target
from scenarios.models import Suite
from tests.builders import make_target
from tests.greeting import EXISTS, greeting

TARGETS = "targets:\n  - {name: local, provider: mock, workers: 3}\n"


def bundle(targets: str = TARGETS) -> SimpleUploadedFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("greet.yaml", greeting(EXISTS))
        archive.writestr("templates/repo/README.md", "Hello.")
        if targets:
            archive.writestr("targets.yaml", targets)
    return SimpleUploadedFile("greetings.zip", stream.getvalue())


def uploaded_targets(response):
    assert response.status_code == 201
    return [(each["name"], each["accepted"]) for each in response.json()["targets"]]


def test_an_embedded_evalhub_takes_them_over(api):
    assert uploaded_targets(api("author").upload("/suites", bundle())) == [("local", True)]
    assert Target.objects.get().workers == 3


def test_fields_that_are_ignored_are_said(api):
    client = api("author")
    answer = client.upload("/suites", bundle(TARGETS.replace("workers", "colour"))).json()
    (hint,) = answer["target_hints"]
    assert (hint["line"], hint["what"]) == (2, "A mock target has no field 'colour'.")
    sentence = "A mock target has no field 'colour'. It is ignored. Remove it."
    assert client.get("/targets/local").json()["hints"] == [sentence]


@pytest.mark.parametrize("role", ["author", "admin"])
def test_on_a_server_they_are_proposals_for_every_role(api, served, role):
    assert uploaded_targets(api(role).upload("/suites", bundle())) == [("local", False)]
    assert not Target.objects.get().accepted


@pytest.mark.parametrize("role", ["author", "admin"])
def test_on_a_server_a_target_in_use_stays_as_it_is(api, served, project, role):
    make_target(project)
    assert uploaded_targets(api(role).upload("/suites", bundle())) == [("local", True)]
    assert Target.objects.get().workers is None


def test_only_an_admin_sees_how_they_are_defined(api):
    (seen,) = api("author").upload("/suites", bundle()).json()["targets"]
    assert seen["definition"] is None
    (seen,) = api("admin").upload("/suites", bundle()).json()["targets"]
    assert seen["definition"]["provider"] == "mock"


def test_a_broken_targets_file_does_not_stop_the_suite(api):
    answer = api("author").upload("/suites", bundle(TARGETS.replace("mock", "mok"))).json()
    (problem,) = answer["target_problems"]
    assert (problem["file"], problem["line"]) == ("targets.yaml", 2)
    assert answer["targets"] == []
    assert Suite.objects.exists() and not Target.objects.exists()


def test_a_bundle_without_one_brings_none(api):
    answer = api("author").upload("/suites", bundle("")).json()
    assert (answer["targets"], answer["target_problems"]) == ([], [])


def test_a_runner_brings_nothing(api):
    assert api("runner").upload("/suites", bundle()).status_code == 403
    assert not Target.objects.exists()
