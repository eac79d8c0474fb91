"""Guidance versions of earlier releases: what an agent gets of their skills, and which hash they have."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import SKILLS
from scenarios.imports import Imported, import_files
from scenarios.storing import store_guidance
from tests.builders import make_project
from tests.scenarios.formats.agent_skills_files import SKILL, case, evals

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
ANSWER = {"notes-workspace/iteration-1/eval-1/grading.json": "{}"}


def upload(project: Any, *, skill_text: str = SKILL, folder: str = "", **more: str) -> Imported:
    files = {"SKILL.md": skill_text, "evals/evals.json": evals(case(expected_output="x")), **more}
    contents = {f"{folder}{path}": text.encode() for path, text in files.items()}
    return import_files(Bundle("notetool", contents), project=project, by=None)[0]


def test_documents_over_rest_and_of_archives_are_stored_without_answers() -> None:
    first = upload(make_project())
    files = tuple(
        FixtureFile(f"{SKILLS}/notetool/{path}", text.encode())
        for path, text in sorted({"SKILL.md": SKILL, "evals/evals.json": "{}", **ANSWER}.items())
    )
    guidance, is_new = store_guidance(first.suite, files, by=None)
    assert (guidance, is_new) == (first.guidance, False)
