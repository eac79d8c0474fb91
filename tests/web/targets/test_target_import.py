"""Bringing in targets, by a file of their own or by a suite's."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Target
from tests.builders import make_suite
from tests.web.screen import parse
from tests.web.targets.pages import ADDRESS, FILE

pytestmark = pytest.mark.one_database


def bring(client, content=FILE, name="targets.yaml", **headers):
    return client.post(f"{ADDRESS}import/", {"file": SimpleUploadedFile(name, content)}, headers=headers)


def test_an_admin_imports_at_once(signed_in, served):
    text = bring(signed_in()).content.decode()
    target = Target.objects.get()
    assert target.accepted
    assert target.slots.count() == 2
    assert "1 target imported from targets.yaml: local." in parse(text)
    assert "gpt-5" in text


def test_an_author_proposes(signed_in, served):
    text = parse(bring(signed_in("author")))
    assert not Target.objects.get().accepted
    assert "1 proposed" in text


def test_an_author_of_an_embedded_evalhub_imports_at_once(signed_in):
    bring(signed_in("author"))
    assert Target.objects.get().accepted


@pytest.mark.parametrize("role", ["viewer", "runner"])
def test_only_authors_and_admins_import(signed_in, role):
    assert bring(signed_in(role)).status_code == 403


def test_problems_have_line_fix_and_a_quotation(signed_in):
    response = bring(signed_in(), FILE.replace(b"mock", b"mok"))
    page = parse(response)
    assert response.status_code == 422
    assert "targets.yaml was not imported" in page
    (line,) = page.region("Lines of the file").all("[data-line='3']")
    assert (line.text, line.all("mark")[0].text) == ("provider: mok", "mok")
    assert "targets/unknown-provider" in page
    assert not Target.objects.exists()


def test_htmx_gets_the_lists_alone(signed_in):
    text = bring(signed_in(), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in text and "local" in text


def test_a_missing_file_is_reported(signed_in):
    response = signed_in().post(f"{ADDRESS}import/", {})
    assert response.status_code == 422
    assert "Choose a file." in parse(response)


def test_a_button_imports_a_suites_targets_file(signed_in, project):
    version = make_suite(project, name="Basics")
    version.targets_text, version.targets_file = FILE.decode(), "targets.yaml"
    version.save()
    client = signed_in()
    assert "Import its targets" in parse(client.get("/p/tools/suites/basics/"))
    assert client.post("/p/tools/suites/basics/targets/").status_code == 200
    assert Target.objects.get().name == "local"


def test_a_suite_without_a_targets_file_says_so(signed_in, project):
    make_suite(project, name="Basics")
    text = parse(signed_in().post("/p/tools/suites/basics/targets/", follow=True))
    assert "Basics has no targets file." in text


def test_a_field_that_is_ignored_is_said(signed_in):
    text = parse(bring(signed_in(), b"targets:\n  - {name: quiet, provider: mock, colour: red}\n"))
    assert "A mock target has no field 'colour'. It is ignored. Remove it." in text
