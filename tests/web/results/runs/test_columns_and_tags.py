"""Chosen columns of the runs page, and tags in place."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Run
from tests.builders import make_run
from tests.web.results.runs.pages import ADDRESS
from tests.web.screen import parse


def test_chosen_columns_are_shown_and_kept_by_filters(signed_in, version):
    make_run(version, branch="feature/x", commit="abcdef0123")
    client = signed_in("viewer")
    standard = parse(client.get(ADDRESS)).table("Runs")
    assert standard.columns[4:7] == ["Passed", "Tool, guidance", "95 % interval"]
    table = parse(client.get(f"{ADDRESS}?col=branch&col=none&suite=basics")).table("Runs")
    assert table.columns == ["Select", "Run", "State", "Suite, target", "Passed", "Branch, commit"]
    assert table.rows[0].cell("Branch, commit").text == "feature/xabcdef01"


HTMX = {"HX-Request": "true"}


def edit(client, run, tags, was, **headers):
    return client.post(f"{ADDRESS}{run.pk}/tags/", {"tags": tags, "was": was}, headers=headers)


def test_tags_are_changed_in_place(signed_in, version):
    run = make_run(version, tags=["nightly"])
    client = signed_in("runner")
    form = parse(client.get(f"{ADDRESS}{run.pk}/tags/", headers=HTMX))
    assert form.field(f"Tags of run {run.pk}, comma-separated").value == "nightly"
    saved = edit(client, run, " release,  v2 , release ,", ["nightly"], **HTMX)
    assert parse(saved).text == "release v2 Edit"
    assert Run.objects.get(pk=run.pk).tags == ["release", "v2"]
    assert AuditEvent.objects.get(action="run.tags").detail == {"tags": ["release", "v2"], "was": ["nightly"]}


def test_tags_changed_in_between_are_not_overwritten(signed_in, version):
    run = make_run(version, tags=["nightly", "checked"])
    answer = edit(signed_in("runner"), run, "mine", ["nightly"], **HTMX)
    assert answer.status_code == 422
    assert "Somebody changed the tags in the meantime. They are now: nightly, checked." in parse(answer)
    assert Run.objects.get(pk=run.pk).tags == ["nightly", "checked"]


@pytest.mark.parametrize(
    ("tags", "sentence"),
    [
        (",".join(map(str, range(21))), "A run has at most 20 tags; these are 21. Remove some."),
        ("x" * 51, "is not a tag: tags have at most 50 characters"),
        ("a\x00b", "is not a tag"),
    ],
)
def test_tags_that_cannot_be_stored_are_refused(signed_in, version, tags, sentence):
    run = make_run(version)
    answer = edit(signed_in("runner"), run, tags, [], **HTMX)
    assert answer.status_code == 422
    assert sentence in parse(answer)
    assert Run.objects.get(pk=run.pk).tags == []


def test_without_a_script_tags_are_saved_from_the_runs_page(signed_in, version):
    run = make_run(version, tags=["a"])
    client = signed_in("runner")
    form = parse(client.get(f"{ADDRESS}{run.pk}/tags/"))
    assert form.headings == [f"Tags of run {run.pk}"]
    assert form.field(f"Tags of run {run.pk}, comma-separated").value == "a"
    page = client.post(f"{ADDRESS}{run.pk}/tags/", {"tags": "b", "was": ["a"]}, follow=True)
    assert f"Saved the tags of run {run.pk}." in parse(page)
