"""Uploading suites, and looking at what an upload would change."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Target
from scenarios.models import Suite
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

GOOD = b"""name: list-files
description: Lists the files.
target:
  binary: ls
task:
  prompt: List the files.
evaluation:
  gates:
    - type: command_succeeds
      command: "true"
    - type: file_exists
      path: out.txt
"""
BAD = GOOD.replace(b"type: file_exists", b"type: file_exist")


def upload(client, *contents, names=("list.yaml", "second.yaml"), **given):
    files = [SimpleUploadedFile(name, content) for name, content in zip(names, contents, strict=False)]
    headers = given.pop("headers", {})
    return client.post("/p/tools/upload/", {"file": files, **given}, headers=headers)


def test_an_upload_becomes_a_version(signed_in):
    response = upload(signed_in("author"), GOOD)
    text = parse(response)
    assert response.status_code == 200
    assert "Uploaded list, version 1" in text
    assert Suite.objects.get().versions.get().entries.count() == 1


def test_a_first_upload_says_so(signed_in):
    client = signed_in("author")
    first = "This is the first version."
    assert first in parse(upload(client, GOOD))
    assert first not in parse(upload(client, GOOD))


def test_the_same_file_again_stays_the_same_version(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    assert "No changes in list, version 1" in parse(upload(client, GOOD))


def test_problems_have_line_fix_id_and_a_quotation(signed_in):
    response = upload(signed_in("author"), BAD)
    page = parse(response)
    assert response.status_code == 422
    assert "list.yaml was not uploaded" in page.headings[1]
    (line,) = page.region("Lines of the file").all("[data-line='11']")
    assert (line.text, line.all("mark")[0].text) == ("- type: file_exist", "file_exist")
    assert "file_exists" in page and "format/unknown-gate" in page
    assert not Suite.objects.exists()


def test_htmx_gets_the_problems_alone(signed_in):
    text = upload(signed_in("author"), BAD, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "was not uploaded" in text


def test_checking_only_stores_nothing(signed_in):
    text = parse(upload(signed_in("author"), GOOD, check="on"))
    assert "is valid" in text
    assert "Checked only; nothing was saved." in text
    assert not Suite.objects.exists()


def checked_seal(client, *contents):
    """Return the seal that the button of a checked upload sends."""
    (button,) = parse(upload(client, *contents, check="on")).all("button[name=keep]")
    assert button.text.startswith("Save")
    return button["value"]


def test_checking_a_new_suite_shows_its_first_version(signed_in):
    text = upload(signed_in("author"), GOOD, check="on").content.decode()
    assert "saving creates version 1" in text
    assert "New suite: saving adds all scenarios." in text
    assert "Save as version 1" in parse(text).buttons


def test_checking_shows_what_would_change(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    changed = GOOD.replace(b"List the files.", b"List them <b>all</b>.").replace(
        b"path: out.txt", b"path: all.txt"
    )
    page = parse(upload(client, changed, check="on"))
    assert "✓ list is valid; saving creates version 2" in page.headings
    assert page.facts["Added"] == page.facts["Retired"] == "0"
    assert page.facts["Changed"] == "1: list-files (task, gates)"
    assert page.facts["Not comparable with version 1"] == "1 of 1"
    assert "prompt: List the files." in page.all("tr.removed")[0]
    assert "prompt: List them <b>all</b>." in page
    assert "Save as version 2" in page.buttons
    assert Suite.objects.get().versions.count() == 1


def test_checking_a_stored_suite_reports_no_change(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    assert "unchanged from version 1" in parse(upload(client, GOOD, check="on"))


def test_what_was_checked_is_kept_by_its_seal(signed_in):
    client = signed_in("author")
    seal = checked_seal(client, GOOD)
    assert "Uploaded list, version 1" in parse(upload(client, GOOD, check="on", keep=seal))
    assert Suite.objects.get().versions.count() == 1


@pytest.mark.parametrize("seal", ["x", "0" * 64])
def test_nothing_is_kept_under_another_seal(signed_in, seal):
    text = parse(upload(signed_in("author"), GOOD, keep=seal))
    assert "Nothing was saved because the files" in text
    assert not Suite.objects.exists()


def test_other_files_than_those_checked_are_not_kept(signed_in):
    client = signed_in("author")
    seal = checked_seal(client, GOOD)
    page = parse(upload(client, GOOD.replace(b"Lists", b"Shows"), keep=seal))
    assert "Nothing was saved because the files" in page and "Save as version 1" in page.buttons
    assert not Suite.objects.exists()


def test_a_preview_saves_only_the_checked_files(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    changed = GOOD.replace(b"Lists", b"Shows")
    seal = checked_seal(client, changed)
    upload(client, GOOD.replace(b"Lists", b"Names"))
    page = parse(upload(client, changed, keep=seal))
    assert "Nothing was saved because the files" in page and "Save as version 3" in page.buttons
    assert Suite.objects.get().versions.count() == 2


def test_an_archive_brings_several_files(signed_in):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("basics/one.yaml", GOOD)
        archive.writestr("basics/two.yaml", GOOD.replace(b"list-files", b"list-more"))
    response = upload(signed_in("author"), stream.getvalue(), names=("basics.zip",))
    assert response.status_code == 200
    assert Suite.objects.get().scenarios.count() == 2


def test_problems_name_the_format_of_their_file(signed_in):
    assert "list.yaml, read as llm-tool-test" in parse(upload(signed_in("author"), BAD))


def archive_with_targets(text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("basics/one.yaml", GOOD)
        archive.writestr("basics/targets.yaml", text)
    return stream.getvalue()


TARGETS = "targets:\n  - {name: local, provider: mock}\n"


def test_an_embedded_evalhub_imports_an_uploads_targets(signed_in):
    text = upload(signed_in(), archive_with_targets(TARGETS), names=("basics.zip",)).content.decode()
    assert Target.objects.get().name == "local"
    assert "1 target imported: local." in parse(text)


def test_a_server_asks_before_it_imports_targets(signed_in, settings):
    settings.EMBEDDED = False
    text = upload(signed_in(), archive_with_targets(TARGETS), names=("basics.zip",)).content.decode()
    assert not Target.objects.exists()
    assert 'action="/p/tools/suites/basics/targets/"' in text


def test_a_field_that_a_target_ignores_is_a_hint(signed_in):
    content = archive_with_targets(TARGETS.replace("mock", "mock, colour: red"))
    text = parse(upload(signed_in(), content, names=("basics.zip",)))
    assert Target.objects.exists()
    assert "A mock target has no field 'colour'." in text


def test_a_bad_targets_file_leaves_the_suite_kept(signed_in):
    content = archive_with_targets(TARGETS.replace("mock", "mok"))
    response = upload(signed_in(), content, names=("basics.zip",))
    assert response.status_code == 200
    assert "The suite is saved, but its targets file has errors" in parse(response)
    assert Suite.objects.exists() and not Target.objects.exists()


def test_several_files_are_taken_together(signed_in):
    response = upload(signed_in("author"), GOOD, GOOD.replace(b"list-files", b"list-more"))
    assert response.status_code == 200
    assert sum(suite.scenarios.count() for suite in Suite.objects.all()) == 2


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "empty.yaml"),
        (b"\xff\xfe\x00", "binary.yaml"),
        (b"PK\x03\x04broken", "broken.zip"),
        (b"a: [", "open.yaml"),
    ],
)
def test_a_file_that_is_not_a_suite_is_refused(signed_in, content, name):
    response = upload(signed_in("author"), content, names=(name,))
    assert response.status_code == 422
    assert not Suite.objects.exists()


def test_a_missing_file_is_reported(signed_in):
    response = signed_in("author").post("/p/tools/upload/", {})
    assert response.status_code == 422
    assert "Choose a file." in parse(response)


def test_names_of_files_are_escaped(signed_in):
    page = parse(upload(signed_in("author"), BAD, names=("x<b>y.yaml",)))
    assert "x<b>y.yaml was not uploaded" in page


def test_several_archives_share_the_limits_of_one(signed_in):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(60):
            archive.writestr(f"fixture/{number}", bytes(1 << 20))
    both = [stream.getvalue()] * 2
    response = upload(signed_in("author"), *both, names=("a.zip", "b.zip"))
    assert response.status_code == 422
    assert "more than 104,857,600 bytes in total" in parse(response)


def test_the_number_of_suites_follows_an_upload(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    page = parse(client.get("/p/tools/suites/"))
    assert page.all("#suite-count")[0].text == "1"
    (count,) = parse(client.get("/p/tools/suites/", headers={"HX-Request": "true"})).all("#suite-count")
    assert (count["hx-swap-oob"], count.text) == ("true", "1")
