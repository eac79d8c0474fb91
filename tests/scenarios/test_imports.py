"""Files in, immutable versions out."""

from __future__ import annotations

from typing import Any

import pytest

from evalhub.teams.models import AuditEvent
from scenarios.bundles import Bundle
from scenarios.formats.parsed import ScenarioFileError
from scenarios.imports import Imported, import_files
from scenarios.models import Fixture, Guidance, Scenario, ScenarioVersion, Suite, SuiteVersion, Upload
from scenarios.storing import guidance_files, pack, unpack
from tests.builders import make_member, make_project

pytestmark = pytest.mark.django_db


def scenario(name: str, prompt: str = "Do it.", folder: str = "", more: str = "") -> bytes:
    """Return a scenario file."""
    template = f"template_folder: {folder}\n" if folder else ""
    text = f"name: {name}\ndescription: One task.\n{template}task:\n  prompt: {prompt}\n"
    gates = "evaluation:\n  gates:\n    - type: file_exists\n      path: out.txt\n"
    return (text + more + gates).encode()


def suite(**changes: bytes | None) -> dict[str, bytes]:
    """Return the files of a suite: two scenarios over one fixture with a guidance file. None leaves a file out."""
    files: dict[str, bytes | None] = {
        "one.yaml": scenario("one", folder="box"),
        "two.yaml": scenario("two", folder="box"),
        "templates/box/README.md": b"A box.\n",
        "templates/box/AGENTS.md": b"Be careful.\n",
    }
    files.update(
        {
            name.replace("__", "/").replace("_md", ".md").replace("_yaml", ".yaml"): content
            for name, content in changes.items()
        }
    )
    return {name: content for name, content in files.items() if content is not None}


def imported(project: Any, **changes: bytes | None) -> Imported:
    """Import the suite with these changes and return what came of it."""
    (result,) = import_files(Bundle("box suite", suite(**changes)), project=project, by=None)
    return result


@pytest.fixture
def project():
    return make_project()


def test_it_stores_suite_scenarios_fixture_and_guidance(project):
    result = imported(project)
    assert (result.suite.slug, result.version.number, result.new_version) == ("box-suite", 1, True)
    assert result.changes.added == ("one", "two")
    assert Scenario.objects.count() == ScenarioVersion.objects.count() == 2
    (fixture,) = Fixture.objects.exclude(pk=result.version.source_id)
    assert [file.path for file in unpack(bytes(fixture.archive))] == ["README.md"]
    assert [file.path for file in guidance_files(result.guidance)] == ["AGENTS.md"]


def test_the_same_content_is_the_same_version(project):
    first, second = imported(project), imported(project)
    assert second.version == first.version
    assert not second.new_version
    assert second.changes.unchanged == ("one", "two")
    assert SuiteVersion.objects.count() == 1
    assert Upload.objects.count() == 1


def test_a_difference_in_guidance_alone_is_a_guidance_version(project):
    first = imported(project)
    second = imported(project, templates__box__AGENTS_md=b"Be bold.\n")
    assert second.version == first.version
    assert (second.new_version, second.new_guidance) == (False, True)
    assert Guidance.objects.count() == 2
    assert second.suite.uploads.first().guidance == second.guidance


def test_an_earlier_guidance_is_recognised(project):
    first = imported(project)
    imported(project, templates__box__AGENTS_md=b"Be bold.\n")
    again = imported(project)
    assert again.guidance == first.guidance
    assert not again.new_guidance


def test_only_changed_scenarios_get_a_new_version(project):
    first = imported(project)
    second = imported(project, one_yaml=scenario("one", "Do it well.", "box"))
    assert second.version.number == 2
    assert (second.changes.changed, second.changes.unchanged) == (("one",), ("two",))
    assert ScenarioVersion.objects.count() == 3
    old, new = (
        set(each.version.entries.values_list("scenario_version", flat=True)) for each in (first, second)
    )
    assert len(old & new) == 1


def test_a_changed_fixture_changes_every_scenario_over_it(project):
    imported(project)
    second = imported(project, templates__box__README_md=b"Another box.\n")
    assert second.changes.changed == ("one", "two")


def test_absent_keys_are_retired_and_come_back(project):
    imported(project)
    second = imported(project, two_yaml=None)
    assert second.changes.retired == ("two",)
    assert Scenario.objects.get(key="two").retired
    third = imported(project)
    assert third.changes.added == ("two",)
    assert third.version.number == 1, "the first content again is the first version again"
    assert not Scenario.objects.get(key="two").retired
    assert imported(project).changes.added == (), "what counts is the last upload, not the highest number"


def test_nothing_is_stored_when_there_is_a_problem(project):
    files = suite(two_yaml=b"name: two\ntask: 5\nevaluation:\n  gates: [{type: file_exist}]\n")
    with pytest.raises(ScenarioFileError) as refused:
        import_files(Bundle("box", files), project=project, by=None)
    assert len(refused.value.problems) >= 2, "every problem is listed"
    assert {problem.file for problem in refused.value.problems if not problem.lint} == {"two.yaml"}
    assert not Suite.objects.exists()


def test_projects_do_not_share_fixtures(project):
    imported(project)
    imported(make_project("others"))
    # Each has the fixture of its scenarios, and the files of its upload.
    assert Fixture.objects.count() == 4


def test_it_is_noted_who_uploaded(project):
    ada = make_member(project, "author", "ada")
    import_files(Bundle("box", suite()), project=project, by=ada)
    assert AuditEvent.objects.get(action="suite.upload").user == ada
    assert Upload.objects.get().created_by == ada


def test_guidance_with_a_nul_is_stored_readably(project):
    result = imported(project, templates__box__AGENTS_md=b"caf\xe9 \x00 end\n")
    assert [file.content.decode() for file in guidance_files(result.guidance)] == ["caf\ufffd \ufffd end\n"]


def test_a_fixture_is_packed_the_same_each_time():
    from scenarios.formats.parsed import FixtureFile

    files = (FixtureFile("b.sh", b"echo", executable=True), FixtureFile("a.txt", b"\x00\xff"))
    assert pack(files) == pack(tuple(reversed(files)))
    assert unpack(pack(files)) == (files[1], files[0])
