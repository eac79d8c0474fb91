"""Views of the runs page under a name, chosen columns, and tags in place."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Run, SavedView
from tests.builders import make_run
from tests.web.results.runs.pages import ADDRESS, numbers
from tests.web.screen import parse

SAVE = f"{ADDRESS}views/"


def save(client, **given):
    return client.post(SAVE, {"name": "Failures", "query": "state=fail&nonsense=1", **given}, follow=True)


def test_a_view_is_saved_shown_and_deleted(signed_in, version):
    failed = make_run(version, outcome="fail")
    make_run(version, outcome="pass")
    client = signed_in("viewer")
    page = save(client)
    assert "Saved the view Failures." in parse(page)
    assert numbers(page) == [failed.pk]
    assert SavedView.objects.get().query == "state=fail"
    links = {
        name: address for name, address in parse(client.get(ADDRESS)).links.items() if "Failures" in name
    }
    assert list(links.values()) == [f"{ADDRESS}?state=fail"]
    gone = client.post(f"{SAVE}{SavedView.objects.get().pk}/delete/", follow=True)
    assert "Deleted the view Failures." in parse(gone)
    assert not SavedView.objects.exists()


def test_the_default_view_opens_without_filters(signed_in, version):
    failed = make_run(version, outcome="fail")
    passed = make_run(version, outcome="pass")
    client = signed_in("runner")
    save(client, default="1", **{"for": "team"})
    assert numbers(client.get(ADDRESS, follow=True)) == [failed.pk]
    assert numbers(client.get(f"{ADDRESS}?view=all")) == [passed.pk, failed.pk]
    save(client, name="Passes", query="state=pass", default="1")
    assert numbers(client.get(ADDRESS, follow=True)) == [passed.pk]


def test_another_persons_view_is_not_mine(signed_in, version):
    save(signed_in("runner"))
    other = signed_in("admin")
    assert "Failures" not in parse(other.get(ADDRESS))
    assert other.post(f"{SAVE}{SavedView.objects.get().pk}/delete/").status_code == 404


def test_a_team_view_is_a_runners_to_save_and_delete(signed_in, version):
    viewer = signed_in("viewer")
    refused = save(viewer, **{"for": "team"})
    assert "Only runners and above save views for the team." in parse(refused)
    assert not SavedView.objects.exists()
    save(signed_in("runner"), **{"for": "team"})
    kept = viewer.post(f"{SAVE}{SavedView.objects.get().pk}/delete/", follow=True)
    assert "Only runners and above delete the team's views." in parse(kept)
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["view.save"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\x07b"])
def test_a_view_needs_a_name_that_can_be_shown(signed_in, version, name):
    page = save(signed_in("viewer"), name=name)
    assert "Give the view a name of at most 80 characters." in parse(page)
    assert not SavedView.objects.exists()


def test_saving_a_name_again_replaces_the_view(signed_in, version):
    client = signed_in("viewer")
    save(client)
    save(client, query="state=pass")
    assert [view.query for view in SavedView.objects.all()] == ["state=pass"]


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
