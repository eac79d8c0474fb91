"""Suites: the list, the upload, one of them."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Target
from scenarios.models import Suite
from tests.builders import make_guidance, make_project, make_run, make_suite, make_target, make_trial

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
    text = response.content.decode()
    assert response.status_code == 200
    assert "is version 1" in text
    assert Suite.objects.get().versions.get().entries.count() == 1


def test_the_same_file_again_stays_the_same_version(signed_in):
    client = signed_in("author")
    upload(client, GOOD)
    assert "has not changed, it is still version 1" in upload(client, GOOD).content.decode()


def test_problems_are_told_with_line_fix_id_and_the_quoted_line(signed_in):
    response = upload(signed_in("author"), BAD)
    text = response.content.decode()
    assert response.status_code == 422
    assert "list.yaml was not uploaded" in text
    assert '<span data-line="11" class="here">    - type: <mark>file_exist</mark></span>' in text
    assert "file_exists" in text
    assert 'class="id">' in text
    assert not Suite.objects.exists()


def test_htmx_gets_the_problems_alone(signed_in):
    text = upload(signed_in("author"), BAD, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "was not uploaded" in text


def test_checking_only_stores_nothing(signed_in):
    text = upload(signed_in("author"), GOOD, check="on").content.decode()
    assert "has no problem" in text
    assert not Suite.objects.exists()


def test_an_archive_brings_several_files(signed_in):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("basics/one.yaml", GOOD)
        archive.writestr("basics/two.yaml", GOOD.replace(b"list-files", b"list-more"))
    response = upload(signed_in("author"), stream.getvalue(), names=("basics.zip",))
    assert response.status_code == 200
    assert Suite.objects.get().scenarios.count() == 2


def test_problems_name_the_format_of_their_file(signed_in):
    assert "list.yaml, read as llm-tool-test" in upload(signed_in("author"), BAD).content.decode()


def archive_with_targets(text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("basics/one.yaml", GOOD)
        archive.writestr("basics/targets.yaml", text)
    return stream.getvalue()


TARGETS = "targets:\n  - {name: local, provider: mock}\n"


def test_an_embedded_evalhub_takes_over_the_targets_of_an_upload(signed_in):
    text = upload(signed_in(), archive_with_targets(TARGETS), names=("basics.zip",)).content.decode()
    assert Target.objects.get().name == "local"
    assert "<strong>1 target</strong> came with it: local." in text


def test_a_server_for_many_asks_before_it_takes_over_targets(signed_in, settings):
    settings.EMBEDDED = False
    text = upload(signed_in(), archive_with_targets(TARGETS), names=("basics.zip",)).content.decode()
    assert not Target.objects.exists()
    assert 'action="/p/tools/suites/basics/targets/"' in text


def test_a_bad_targets_file_leaves_the_suite_kept(signed_in):
    content = archive_with_targets(TARGETS.replace("mock", "mok"))
    response = upload(signed_in(), content, names=("basics.zip",))
    assert response.status_code == 200
    assert "The targets file was not taken over" in response.content.decode()
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
def test_what_is_no_suite_is_refused_in_a_sentence(signed_in, content, name):
    response = upload(signed_in("author"), content, names=(name,))
    assert response.status_code == 422
    assert not Suite.objects.exists()


def test_no_file_at_all_is_told(signed_in):
    response = signed_in("author").post("/p/tools/upload/", {})
    assert response.status_code == 422
    assert "Choose a file first." in response.content.decode()


def test_names_of_files_are_escaped(signed_in):
    text = upload(signed_in("author"), BAD, names=("<b>x</b>.yaml",)).content.decode()
    assert "<b>x" not in text


def test_the_list_shows_what_was_run(signed_in, project):
    run = make_run(make_suite(project, name="Basics"))
    make_trial(run)
    make_suite(project, name="Never run")
    text = signed_in().get("/p/tools/suites/").content.decode()
    assert '100.0%<span class="of">1/1</span>' in text
    assert "never run" in text


def test_the_list_says_what_to_do_without_suites(signed_in):
    assert "No suites yet" in signed_in().get("/p/tools/suites/").content.decode()


def test_the_list_is_by_name(signed_in, project):
    for name in ("Second", "First"):
        make_suite(project, name=name)
    rows = signed_in().get("/p/tools/suites/").context["suites"]
    assert [row.suite.name for row in rows] == ["First", "Second"]


def test_the_newest_guidance_stands_first(signed_in, project):
    suite = make_suite(project, name="Basics").suite
    for name in ("v1", "v2"):
        make_guidance(suite, name)
    page = signed_in().get("/p/tools/suites/basics/").context["page"]
    assert [str(each) for each in page.guidance] == ["v2", "v1"]


def test_the_guidance_of_the_last_upload_is_what_a_run_takes(signed_in, project):
    suite = make_suite(project, name="Basics").suite
    first, _ = make_guidance(suite, "v1"), make_guidance(suite, "v2")
    suite.uploads.create(suite_version=suite.versions.get(), guidance=first)
    text = signed_in().get("/p/tools/suites/basics/").content.decode()
    assert "<dt>Guidance</dt><dd>v1</dd>" in text
    assert 'v1 <span class="tag">last upload</span>' in text
    assert text.count("last upload") == 1


def test_viewers_see_no_upload_form(signed_in):
    assert "/p/tools/upload/" not in signed_in("viewer").get("/p/tools/suites/").content.decode()


def test_the_list_shows_only_this_project(signed_in):
    make_suite(make_project("other"), name="Secret")
    assert "Secret" not in signed_in().get("/p/tools/suites/").content.decode()


def test_the_list_makes_as_many_queries_for_many_suites(signed_in, project, django_assert_max_num_queries):
    for _ in range(6):
        make_run(make_suite(project))
    client = signed_in()
    # Session, user, access, the six of the reader, the menu's projects.
    with django_assert_max_num_queries(10):
        client.get("/p/tools/suites/")


@pytest.fixture
def tried(project):
    """A suite with a solid, a flaky, a broken scenario, and one of too few trials."""
    version = make_suite(
        project, ("solid-one", "flaky-one", "broken-one", "few-one"), name="Basics", tags=["smoke"]
    )
    for number in range(4):
        run = make_run(version)
        make_trial(run, "solid-one")
        make_trial(run, "flaky-one", outcome="pass" if number % 2 else "fail")
        make_trial(run, "broken-one", outcome="fail")
    return version


@pytest.mark.parametrize(
    ("criteria", "checks", "judged"),
    [
        ({"gates": [{"type": "file_exists", "path": "out.txt"}]}, 1, False),
        ({"evaluators": [{"type": "llm_judge"}, {"type": "expected_messages"}]}, 2, True),
        ({"evaluators": [{"type": "expected_messages"}]}, 1, False),
        ({"expect": {"tools_called": [], "no_tool_errors": True, "stubs": ["search"]}}, 2, False),
    ],
    ids=["gates", "judged answer", "answer", "assertions"],
)
def test_a_suite_counts_what_looks_at_a_trial_in_every_format(signed_in, project, criteria, checks, judged):
    make_suite(project, ("one",), name="Basics", criteria=criteria)
    (line,) = signed_in().get("/p/tools/suites/basics/").context["lines"]
    assert (line.checks, line.judged) == (checks, judged)


@pytest.mark.parametrize("kind", ["solid", "flaky", "broken", "few"])
def test_a_suite_tells_steady_scenarios_from_others(signed_in, tried, kind):
    response = signed_in().get(f"/p/tools/suites/basics/?show={kind}")
    assert [line.scenario.key for line in response.context["lines"]] == [f"{kind}-one"]


def test_two_trials_are_too_few_to_tell(signed_in, project):
    run = make_run(make_suite(project, ("one",), name="Basics"))
    make_trial(run, "one")
    make_trial(run, "one", outcome="fail")
    response = signed_in().get("/p/tools/suites/basics/")
    assert response.content.decode().count("too few trials") == 2
    assert "not run yet" not in response.content.decode()


def test_a_suite_shows_versions_guidance_and_hints(signed_in, project):
    lint = {
        "file": "a.yaml",
        "line": 3,
        "where": "",
        "what": "One gate.",
        "fix": "Add one.",
        "id": "lint/x",
        "lint": True,
    }
    version = make_suite(project, name="Basics", lints=[lint])
    make_guidance(version.suite, "AGENTS.md v3")
    text = signed_in().get("/p/tools/suites/basics/").content.decode()
    for expected in ("AGENTS.md v3", "One gate.", "lint/x", version.sha256[:8]):
        assert expected in text


def test_a_suite_can_be_narrowed_to_a_target(signed_in, tried, project):
    run = make_run(tried, target=make_target(project, "codex"))
    make_trial(run, "few-one")
    lines = signed_in().get("/p/tools/suites/basics/?target=codex").context["lines"]
    assert {line.scenario.key: line.strip.outcomes for line in lines}["few-one"] == ("pass",)
    assert {line.scenario.key: line.strip.outcomes for line in lines}["solid-one"] == ()
