"""A guidance version becomes that of its suite."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from scenarios.adopted_guidance import AdoptionRefused, adopt_guidance, last_guidance
from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile
from scenarios.imports import import_files
from scenarios.models import Suite
from scenarios.sources import source_of
from scenarios.storing import store_guidance
from tests.builders import make_guidance, make_project, make_suite

pytestmark = pytest.mark.django_db

SCENARIO = """\
name: {name}
description: Says hello.
target: {{binary: git}}
template_folder: repo
task: {{prompt: Say hello.}}
evaluation: {{gates: [{{type: file_exists, path: out.txt}}]}}
"""


def upload(**more: bytes) -> Suite:
    files = {"hello.yaml": SCENARIO.format(name="hello").encode(), "templates/repo/AGENTS.md": b"Be brief.\n"}
    return import_files(Bundle("greetings", files | more), project=make_project(), by=None)[0].suite


def version_of(suite: Suite, *documents: tuple[str, bytes]):
    return store_guidance(suite, tuple(FixtureFile(*each) for each in documents), by=None, name="better")[0]


def test_an_adopted_version_is_in_the_suites_files():
    suite = upload()
    better = version_of(suite, ("AGENTS.md", b"Be brief and kind.\n"))
    before = source_of(suite)
    assert adopt_guidance(better, by=None)
    source = source_of(suite)
    assert last_guidance(suite) == better
    assert source.text("templates/repo/AGENTS.md") == "Be brief and kind.\n"
    assert source.version == before.version, "the scenarios are the same"
    assert suite.uploads.count() == 2
    event = AuditEvent.objects.get(action="guidance.adopt")
    assert (event.subject, event.detail) == ("better", {"suite": "greetings", "was": "guidance 1"})


def test_editing_another_file_keeps_what_was_adopted():
    suite = upload()
    better = version_of(suite, ("AGENTS.md", b"Be brief and kind.\n"))
    adopt_guidance(better, by=None)
    edited = source_of(suite).changed("again.yaml", SCENARIO.format(name="again").encode())
    import_files(edited, project=suite.project, by=None)
    assert last_guidance(suite) == better


def test_adopting_again_changes_nothing():
    suite = upload()
    assert not adopt_guidance(last_guidance(suite), by=None)
    assert suite.uploads.count() == 1 and not AuditEvent.objects.filter(action="guidance.adopt").exists()


def test_the_one_before_can_be_adopted_again():
    suite = upload()
    first = last_guidance(suite)
    adopt_guidance(version_of(suite, ("AGENTS.md", b"Be kind.\n")), by=None)
    assert adopt_guidance(first, by=None)
    assert last_guidance(suite) == first
    assert source_of(suite).text("templates/repo/AGENTS.md") == "Be brief.\n"


def test_a_document_without_a_place_in_the_files_is_adopted_by_the_upload_alone():
    suite = upload()
    more = version_of(suite, ("AGENTS.md", b"Be brief.\n"), ("docs/AGENTS.md", b"More.\n"))
    adopt_guidance(more, by=None)
    assert last_guidance(suite) == more
    assert source_of(suite).text("templates/repo/AGENTS.md") == "Be brief.\n"


def test_a_suite_without_an_upload_has_nothing_to_adopt_for():
    version = make_suite(make_project())
    version.uploads.all().delete()
    with pytest.raises(AdoptionRefused, match="never uploaded"):
        adopt_guidance(make_guidance(version.suite), by=None)
