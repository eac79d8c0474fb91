"""Guidance versions of earlier releases: what an agent gets of their skills, and which hash they have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import SKILLS
from scenarios.hashing import guidance_hash
from scenarios.imports import Imported, import_files
from scenarios.models import Guidance, Upload
from scenarios.storing import guidance_files, keep_guidance, restore_documents
from tests.builders import make_project
from tests.scenarios.formats.agent_skills_files import SKILL, case, evals

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
MIGRATION = import_module("scenarios.migrations.0007_guidance_left_out")
ANSWER = {"notes-workspace/iteration-1/eval-1/grading.json": "{}"}


def upload(project: Any, *, skill_text: str = SKILL, folder: str = "", **more: str) -> Imported:
    files = {"SKILL.md": skill_text, "evals/evals.json": evals(case(expected_output="x")), **more}
    contents = {f"{folder}{path}": text.encode() for path, text in files.items()}
    return import_files(Bundle("notetool", contents), project=project, by=None)[0]


def store_earlier(upload: Imported, number: int, *, name: str = "", **files: str) -> Guidance:
    """Return a version as an earlier release stored it, with everything in the skill's folder."""
    documents = [
        {"path": f"{SKILLS}/notetool/{path}", "content": text} for path, text in sorted(files.items())
    ]
    sha256 = guidance_hash(restore_documents(documents))
    guidance = Guidance.objects.create(
        suite=upload.suite, number=number, sha256=sha256, name=name, files=documents
    )
    Upload.objects.create(suite=upload.suite, suite_version=upload.version, guidance=guidance)
    return guidance


def paths_of(guidance: Guidance) -> list[str]:
    return [file.path.removeprefix(f"{SKILLS}/notetool/") for file in guidance_files(guidance)]


def test_an_unchanged_skill_is_no_new_version_and_keeps_its_name() -> None:
    project = make_project()
    first = upload(project, skill_text=f"{SKILL}Of another time.\n")
    files = {"SKILL.md": SKILL, "tests/a.py": "x", "scripts/run.sh": "x", **ANSWER}
    earlier = store_earlier(first, 2, name="Second try", **files)
    MIGRATION.leave_out(apps, None)
    again = upload(project, **files)
    assert (again.guidance, again.new_guidance) == (earlier, False)
    earlier.refresh_from_db()
    assert (earlier.name, paths_of(earlier)) == ("Second try", ["SKILL.md", "scripts/run.sh"])
    # What it had isn't lost.
    MIGRATION.put_back(apps, None)
    earlier.refresh_from_db()
    assert paths_of(earlier) == sorted(files)


def test_below_a_repositorys_root_tests_are_part_of_the_skill() -> None:
    project = make_project()
    files = {"SKILL.md": SKILL, "tests/a.py": "x", **ANSWER}
    first = upload(project, folder="skills/notetool/", skill_text=f"{SKILL}Other.\n")
    earlier = store_earlier(first, 2, **files)
    MIGRATION.leave_out(apps, None)
    assert upload(project, folder="skills/notetool/", **files).guidance == earlier


def test_where_versions_become_equal_uploads_match_the_oldest() -> None:
    project = make_project()
    first = upload(project, skill_text=f"{SKILL}Of another time.\n")
    oldest = store_earlier(first, 2, **{"SKILL.md": SKILL, **ANSWER})
    without = store_earlier(first, 3, **{"SKILL.md": SKILL})
    newest = store_earlier(first, 4, **{"SKILL.md": SKILL, "benchmark.md": "x"})
    hashes = [each.sha256 for each in (oldest, without, newest)]
    MIGRATION.leave_out(apps, None)
    stored = dict(Guidance.objects.values_list("number", "sha256"))
    assert (stored[2], stored[3], stored[4]) == (hashes[1], hashes[0], hashes[2])
    assert stored[1] == first.guidance.sha256  # type: ignore[union-attr]
    assert upload(project).guidance == oldest
    newest.refresh_from_db()
    assert paths_of(newest) == ["SKILL.md"]


def test_documents_over_rest_and_of_archives_are_stored_without_answers() -> None:
    first = upload(make_project())
    files = tuple(
        FixtureFile(f"{SKILLS}/notetool/{path}", text.encode())
        for path, text in sorted({"SKILL.md": SKILL, "evals/evals.json": "{}", **ANSWER}.items())
    )
    guidance, is_new = keep_guidance(first.suite, files, by=None)
    assert (guidance, is_new) == (first.guidance, False)
