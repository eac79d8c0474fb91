"""Uploading a skill's folder: as a zip, file by file with paths, over REST; and what a run of it shows."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from scenarios.guidance import SKILLS
from scenarios.models import Guidance, Suite
from scenarios.storing import guidance_files
from tests.scenarios.formats.agent_skills_files import SAMPLES, case, evals, skill
from tests.web.screen import parse

pytestmark = pytest.mark.one_database
PICTURE = b"\x89PNG\r\n\xff\x00"


def zipped(files: dict[str, Any], top: str = "notetool") -> SimpleUploadedFile:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, content in files.items():
            archive.writestr(f"{top}/{path}", content)
    return SimpleUploadedFile(f"{top}.zip", packed.getvalue())


def post(client, files, **given):
    return client.post("/p/tools/upload/", {"file": files, **given})


def folder(files: dict[str, str], top: str = "notetool") -> dict[str, Any]:
    """Return what a browser sends for a dropped folder: files without their folders, and their paths."""
    return {
        "file": [SimpleUploadedFile(path.rsplit("/", 1)[-1], text.encode()) for path, text in files.items()],
        "paths": json.dumps([f"{top}/{path}" for path in files]),
    }


def test_a_zip_of_a_skill_is_a_suite_with_the_skill_as_guidance(signed_in):
    files = skill(evals(case(expected_output="A note."))) | {"assets/logo.png": PICTURE}
    page = parse(post(signed_in("author"), zipped(files)))
    assert "Uploaded notetool, version 1" in page
    stored = guidance_files(Guidance.objects.get())
    assert [(file.path, file.content == PICTURE) for file in stored] == [
        (f"{SKILLS}/notetool/SKILL.md", False),
        (f"{SKILLS}/notetool/assets/logo.png", True),
    ]


def test_a_changed_skill_is_new_guidance_of_the_same_version(signed_in):
    client, files = signed_in("author"), skill(evals(case(expected_output="A note.")))
    post(client, zipped(files))
    page = parse(post(client, zipped(files | {"SKILL.md": files["SKILL.md"] + "More.\n"})))
    assert "No changes in notetool, version 1" in page
    assert (Suite.objects.get().versions.count(), Guidance.objects.count()) == (1, 2)


def test_a_dropped_folder_keeps_its_paths(signed_in):
    page = parse(
        signed_in("author").post("/p/tools/upload/", folder(skill(evals(case(expected_output="A note.")))))
    )
    assert "Uploaded notetool, version 1" in page


@pytest.mark.parametrize("path", ["../evil.json", "/etc/passwd", "a\\b", "a//b"])
def test_a_path_that_leads_outside_is_refused(signed_in, path):
    sent = folder(skill(evals(case(expected_output="A note."))))
    sent["paths"] = json.dumps(["notetool/SKILL.md", path])
    response = signed_in("author").post("/p/tools/upload/", sent)
    assert response.status_code == 422
    assert not Suite.objects.exists()


@pytest.mark.parametrize("paths", ["", "[]", "{}", '["a"]'])
def test_without_a_path_for_each_file_they_lie_side_by_side(signed_in, paths):
    sent = folder(skill(evals(case(expected_output="A note."))))
    assert "Uploaded notetool, version 1" in parse(
        signed_in("author").post("/p/tools/upload/", {**sent, "paths": paths})
    )


def test_paths_that_are_no_json_are_refused(signed_in):
    sent = folder(skill(evals(case(expected_output="A note."))))
    response = signed_in("author").post("/p/tools/upload/", {**sent, "paths": "no JSON"})
    assert response.status_code == 422
    assert not Suite.objects.exists()


def test_a_broken_skill_shows_the_line_and_stores_nothing(signed_in):
    response = post(signed_in("author"), zipped(skill(evals(case(files=["data/a.csv"])))))
    page = parse(response)
    assert response.status_code == 422
    assert "format/missing-file" in page
    assert "Looked for 'evals/data/a.csv', 'data/a.csv'." in page
    assert not Suite.objects.exists()


def test_several_suites_of_a_skill_are_uploaded_at_once(signed_in):
    page = parse(post(signed_in("author"), zipped(SAMPLES["a list of trigger queries"].files)))
    assert "Uploaded notetool, version 1" in page
    assert "Uploaded notetool-triggers, version 1" in page
    assert "format/tool-not-named" in page
