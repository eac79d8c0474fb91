"""Runs taken away as files, and results of other programs brought in."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.exchange.exports.exports import EXPORTS
from runs.models import Run
from scenarios.models import Suite
from tests.builders import close, make_project, make_run, make_suite, make_trial
from tests.web.screen import parse

IMPORT = "/p/tools/runs/import/"
RESULTS = "".join(
    json.dumps({"eval_id": key, "score": score, "hits": [], "misses": [], "candidate_answer": "x"}) + "\n"
    for key, score in (("one", 1.0), ("two", 0.0))
)


@pytest.fixture
def run(project):
    made = make_run(make_suite(project, name="Basics"))
    make_trial(made)
    return close(made)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_run_can_be_taken_away_as(signed_in, run, name):
    response = signed_in("viewer").get(f"/p/tools/runs/{run.pk}/download/{name}/")
    export = EXPORTS[name]
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith(export.media_type)
    assert response.headers["Content-Disposition"] == f'attachment; filename="run-{run.pk}.{export.ending}"'
    assert b"create" in response.content


def test_the_page_offers_every_format(signed_in, run):
    links = parse(signed_in().get(f"/p/tools/runs/{run.pk}/")).links
    for name, export in EXPORTS.items():
        assert links[export.title].endswith(f"/download/{name}/")


def test_an_unknown_format_is_not_found(signed_in, run):
    assert signed_in().get(f"/p/tools/runs/{run.pk}/download/pdf/").status_code == 404


def test_another_projects_run_is_not_found(signed_in, run):
    stranger = signed_in(of=make_project("other"))
    assert stranger.get(f"/p/other/runs/{run.pk}/download/json/").status_code == 404


def bring(client, content, name="results.jsonl", keep=""):
    return client.post(IMPORT, {"file": SimpleUploadedFile(name, content.encode()), "keep": keep})


def confirm(client, content, name="results.jsonl"):
    """Preview a file, and press what the preview offers."""
    button = parse(bring(client, content, name)).button("Import 1 run")
    return bring(client, content, name, keep=button["value"])


def test_foreign_results_become_a_run(signed_in):
    client = signed_in("author")
    assert "Drop a results file here" in parse(client.get(IMPORT))
    shown = parse(bring(client, RESULTS))
    assert not Run.objects.exists() and not Suite.objects.exists()
    assert "results.jsonl, read as AgentV." in shown
    facts = shown.facts
    assert (facts["Trials"], facts["Outcomes"]) == ("2 of 2 scenarios", "1 passed, 1 failed, 0 errors")
    assert (facts["Suite"], facts["New scenarios"], facts["Run"]) == ("new", "2: one, two", "new")
    assert shown.links["Cancel"] == IMPORT
    response = confirm(client, RESULTS)
    run = Run.objects.get()
    assert response.url == f"/p/tools/runs/{run.pk}/"
    assert (run.trials, run.passed, run.failed) == (2, 1, 1)


def test_a_file_that_was_imported_names_its_run(signed_in):
    client = signed_in("author")
    confirm(client, RESULTS)
    run = Run.objects.get()
    shown = parse(bring(client, RESULTS))
    assert "Nothing to import" in shown and "It was imported before: run" in shown
    assert shown.links[f"run {run.pk}"] == run.get_absolute_url()


def test_another_file_than_the_previewed_one_is_previewed_first(signed_in):
    client = signed_in("author")
    seal = parse(bring(client, RESULTS)).button("Import 1 run")["value"]
    other = parse(bring(client, RESULTS.replace("two", "three"), keep=seal))
    assert "Nothing was imported because the file or what is stored changed" in other
    assert "2: one, three" in other
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "results.jsonl: no results found."),
        ('{"cases": []}', "no case in `cases` has an `id`."),
        ("", "The file is empty."),
    ],
    ids=["nothing", "no cases", "empty"],
)
def test_an_invalid_file_is_reported_in_place(signed_in, content, sentence):
    response = bring(signed_in(), content)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not Run.objects.exists()


def test_a_missing_file_is_reported(signed_in):
    response = signed_in().post(IMPORT, {})
    assert response.status_code == 422
    assert "Choose a file." in parse(response)


def test_only_authors_bring_results(signed_in):
    client = signed_in("runner")
    assert bring(client, RESULTS).status_code == 403
    assert IMPORT not in client.get("/p/tools/runs/").content.decode()


def test_missing_times_are_shown_as_unknown(signed_in, project):
    client = signed_in("author")
    confirm(client, RESULTS)
    run = Run.objects.get()
    assert run.seconds is None
    page, rows = (
        client.get(address).content.decode() for address in (run.get_absolute_url(), "/p/tools/runs/")
    )
    for text in (page, rows):
        assert "0.0 s" not in text
        assert "&lt;1 ms" not in text
    assert parse(rows).table("Runs").rows[0].cell("Time").text == "–"
