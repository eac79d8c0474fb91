"""Editing a suite's files in the browser, which saves as an upload does."""

from __future__ import annotations

import pytest

from runs.models import Target
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Suite, SuiteVersion
from scenarios.sources import source_of
from tests.builders import make_run, make_suite, make_target, make_trial
from tests.greeting import EXISTS, greeting
from tests.trial_parts import make_command
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

EDIT = "/p/tools/suites/box/edit/"
NEW = "/p/tools/new-suite/"
GOOD = greeting(EXISTS)
BAD = GOOD.replace("file_exists", "file_exist")
FILES = {
    "greet.yaml": GOOD.encode(),
    "part.yaml": GOOD.replace("greet", "part").encode(),
    "templates/repo/README.md": b"Hello.",
    "templates/repo/AGENTS.md": b"Be nice.",
    "templates/repo/tool.bin": b"\x00\x01",
}
BUNDLE = Bundle("box", FILES, frozenset(["templates/repo/tool.bin"]))


@pytest.fixture
def suite(project):
    (imported,) = import_files(BUNDLE, project=project, by=None)
    return imported.suite


def editor_of(response):
    """Return the form that a file is edited in."""
    (form,) = [each for each in parse(response).all("form") if each.all("textarea")]
    return form


def given(client, path="greet.yaml", **more):
    """Return what the form of a file sends, without its token."""
    fields = editor_of(client.get(EDIT, {"file": path})).form_data
    assert fields["path"] == path
    return {name: fields[name] for name in ("path", "text", "base")} | more


def test_the_page_shows_the_file_with_line_numbers(signed_in, suite):
    page = parse(signed_in("author").get(EDIT))
    assert page.all("textarea")[0].text.startswith("name: greet")
    assert [each.text for each in page.all(".gutter span")][:2] == ["1", "2"]
    assert "templates/repo/tool.bin (not text)" in page


def test_a_saved_file_is_a_new_version_with_everything_else(signed_in, suite):
    client = signed_in("author")
    text = GOOD.replace("Say hello.", "Say hello twice.")
    response = client.post(EDIT, given(client, text=text.replace("\n", "\r\n"), save="yes"))
    assert response.url == "/p/tools/suites/box/"
    assert "Saved version 2 of box." in parse(client.get(response.url))
    source = source_of(suite)
    assert (source.version.number, source.text("greet.yaml")) == (2, text)
    assert source.files["templates/repo/tool.bin"].executable
    assert source.version.created_by is not None
    assert suite.versions.get(number=1).source.sha256 != source.sha256


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("greet.yaml", BAD, "file_exist"),
        ("greet.yaml", "name: [", "This is not YAML"),
        ("../greet.yaml", GOOD, "'..'"),
        ("", GOOD, "The file has no name."),
        ("part.yaml", GOOD, "greet"),
    ],
    ids=["gate", "yaml", "path", "no path", "repeated name"],
)
def test_invalid_files_are_not_saved(signed_in, suite, path, text, problem):
    client = signed_in("author")
    fields = given(client) | {"path": path, "text": text, "save": "yes"}
    response = client.post(EDIT, fields)
    assert response.status_code == 422
    page = parse(response)
    assert problem in page.all("#editor-problems")[0].text
    assert editor_of(response).form_data["text"] == text
    assert SuiteVersion.objects.count() == 1


def test_a_check_marks_lines_and_saves_nothing(signed_in, suite):
    client = signed_in("author")
    for headers, status in (({}, 422), ({"HX-Request": "true"}, 200)):
        response = client.post(EDIT, given(client, text=BAD, check="yes"), headers=headers)
        assert response.status_code == status
        (mark,) = parse(response).all("[data-problem]")
        assert BAD.splitlines()[int(mark["data-goto"]) - 1].strip() == "- type: file_exist"
    assert "is-marked" in client.post(EDIT, given(client, text=BAD)).content.decode()
    good = client.post(EDIT, given(client, text=GOOD.replace("Say", "Tell")), headers={"HX-Request": "true"})
    assert "saving creates version 2" in parse(good)
    assert SuiteVersion.objects.count() == 1


def test_no_problems_never_stands_above_a_hint(signed_in, suite):
    client = signed_in("author")
    hinted = GOOD.replace("prompt: Say hello.", "prompt: FILL-IN the task.")
    page = parse(client.post(EDIT, given(client, text=hinted, check="yes"), headers={"HX-Request": "true"}))
    assert len(page.all(".is-lint")) == 1
    assert "1 hint" in page.headings and "No problems" not in page


def test_a_second_editor_is_warned_and_keeps_the_others_files(signed_in, suite):
    mine, other = signed_in("author"), signed_in("admin")
    fields = given(mine, text=GOOD.replace("Say", "Shout"), save="yes")
    part = FILES["part.yaml"].decode().replace("Say", "Sing")
    other.post(EDIT, given(other, "part.yaml", text=part, save="yes"))
    refused = mine.post(EDIT, fields)
    assert refused.status_code == 422
    assert "saved version 2 in the meantime" in parse(refused)
    assert mine.post(EDIT, fields | {"base": editor_of(refused).form_data["base"]}).status_code == 302
    source = source_of(suite)
    assert "Sing" in source.text("part.yaml") and "Shout" in source.text("greet.yaml")


def test_files_are_added_and_removed(signed_in, suite):
    client = signed_in("author")
    third = {"path": "third.yaml", "text": GOOD.replace("greet", "third"), "base": source_of(suite).sha256}
    client.post(EDIT, third | {"save": "yes"})
    assert set(suite.scenarios.filter(retired=False).values_list("key", flat=True)) == {
        "greet",
        "part",
        "third",
    }
    client.post(EDIT, given(client, "part.yaml", remove="yes"))
    assert suite.scenarios.get(key="part").retired
    assert "part.yaml" not in source_of(suite).files


def test_guidance_is_edited_too(signed_in, suite):
    client = signed_in("author")
    client.post(EDIT, given(client, "templates/repo/AGENTS.md", text="Be brief.", save="yes"))
    assert suite.guidance.first().files[0]["content"] == "Be brief."
    assert suite.versions.count() == 1


def test_a_new_suite_is_written(signed_in, project):
    client = signed_in("author")
    text = GOOD.replace("template_folder: repo\n", "")
    assert "name: my-scenario" in parse(client.get(NEW)).all("textarea")[0].text
    assert (
        client.post(NEW, {"name": "Box", "path": "greet.yaml", "text": BAD, "save": "yes"}).status_code == 422
    )
    response = client.post(NEW, {"name": "Box", "path": "greet.yaml", "text": text, "save": "yes"})
    assert response.url == "/p/tools/suites/box/"
    again = client.post(NEW, {"name": "Box", "path": "x.yaml", "text": text, "save": "yes"})
    assert again.status_code == 422 and "There is already a suite Box." in parse(again)
    assert Suite.objects.get().versions.count() == 1


def test_the_sample_of_a_new_suite_is_valid(signed_in, project):
    client = signed_in("author")
    form = editor_of(client.get(NEW))
    client.post(NEW, {"path": form.field("File").value, "text": form.field("Text").value, "save": "yes"})
    assert Suite.objects.get().slug == "my-scenario"


def test_a_scenario_opens_at_its_line_and_is_retired(signed_in, suite):
    client = signed_in("author")
    assert f"{EDIT}?scenario=part" in parse(client.get("/p/tools/suites/box/")).addresses
    page = parse(client.get(EDIT, {"scenario": "part"}))
    assert page.field("part.yaml").value.startswith("name: part")
    assert page.region("part").button("Retire scenario")["value"] == "part"
    client.post("/p/tools/suites/box/retire/", {"scenario": "part"})
    assert suite.scenarios.get(key="part").retired
    last = client.post("/p/tools/suites/box/retire/", {"scenario": "greet"}, follow=True)
    assert "greet was not retired" in parse(last)
    assert not suite.scenarios.get(key="greet").retired


def test_a_scenario_that_shares_its_file_is_retired_in_the_editor(signed_in, project):
    golden = b'[{"id": "a", "description": "A", "input": {"message": "x"}, "expect": {"toolsCalled": ["t"]}},'
    golden += b'{"id": "b", "description": "B", "input": {"message": "y"}, "expect": {"toolsCalled": ["t"]}}]'
    import_files(Bundle("box", {"evals.golden.json": golden}), project=project, by=None)
    slug = Suite.objects.get().slug
    page = signed_in("author").post(f"/p/tools/suites/{slug}/retire/", {"scenario": "a"}, follow=True)
    assert "a shares its file with 1 other scenario. Remove its lines here, then save." in parse(page)
    assert SuiteVersion.objects.count() == 1


def test_a_suite_without_kept_files_says_what_to_do(signed_in, suite):
    SuiteVersion.objects.update(source=None)
    client = signed_in("author")
    assert "Upload it again without changes" in parse(client.get(EDIT))
    import_files(BUNDLE, project=suite.project, by=None)
    assert parse(client.get(EDIT)).field("greet.yaml").value == GOOD
    assert suite.versions.count() == 1


def test_a_draft_of_a_trial_opens_in_the_editor(signed_in, suite):
    version = suite.versions.get()
    trial = make_trial(make_run(version, target=make_target(suite.project)), outcome="fail")
    make_command(trial, 0, "git sync", subcommand="sync", exit_code=1, failed=True)
    client = signed_in("author")
    address = next(
        each for each in parse(client.get(f"/p/tools/trials/{trial.pk}/draft/")).addresses if EDIT in each
    )
    form = editor_of(client.get(address))
    assert form.field("File").value == f"sync-trial-{trial.pk}-1.yaml"
    assert "FILL-IN" in form.field("Text").value
    assert "Remove file" not in form.buttons
    assert editor_of(client.get(NEW, {"draft": trial.pk})).field("Text").value == form.field("Text").value
    assert Target.objects.count() == 1


def test_a_new_suites_file_names_its_schema_at_this_server(signed_in, settings):
    settings.PUBLIC_URL = "https://evals.example"
    answer = signed_in("author").get(NEW)
    assert parse(answer).link("schemas")["href"] == "/schemas/"
    first, *rest = editor_of(answer).field("Text").value.splitlines()
    assert first == "# yaml-language-server: $schema=https://evals.example/schemas/llm-tool-test.json"
    assert rest[0] == "name: my-scenario"


@pytest.mark.parametrize("address", [EDIT, NEW, "/p/tools/suites/box/retire/"])
def test_only_authors_edit(signed_in, suite, address):
    assert signed_in("runner").post(address).status_code == 403


def test_a_missing_file_is_not_found(signed_in, suite):
    assert signed_in("author").get(EDIT, {"file": "nowhere.yaml"}).status_code == 404


def test_a_suite_of_another_project_is_not_found(signed_in, project):
    make_suite(project, name="Other")
    assert signed_in("author").get(EDIT).status_code == 404
