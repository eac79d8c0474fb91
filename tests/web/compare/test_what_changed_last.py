"""The trends page: what changed last, the strip of changes, and annotations."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Annotation, Change, Measure, Run
from tests.builders import close, make_guidance, make_member, make_project, make_run, make_suite, make_trial
from tests.web.screen import parse

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def suite(project):
    return make_suite(project, ("create", "export"), name="git-basics")


def measured_runs(version, outcomes, **changes):
    """Return closed runs of one trial a scenario, one a day."""
    runs = []
    for outcome in outcomes:
        run = make_run(version, **changes)
        for key in ("create", "export"):
            make_trial(run, key, outcome=outcome)
        close(run)
        Run.objects.filter(pk=run.pk).update(finished=START + timedelta(days=Run.objects.count()))
        run.refresh_from_db()
        runs.append(run)
    return runs


def store_verdict(run, verdict, before, after, measure="pass"):
    layer = "trial" if measure == "pass" else "interaction"
    Change.objects.create(
        run=run,
        baseline=run,
        measure=Measure.objects.get(layer=layer, name=measure),
        verdict=verdict,
        before=before,
        after=after,
    )


def lead(client, query=""):
    return " ".join(parse(client.get(f"/p/tools/trends/{query}")).all(".lead")[0].text.split())


def day_of(run):
    return f"{run.finished.day} {run.finished:%b}"


def test_the_last_change_is_a_stored_verdict(signed_in, suite):
    measured_runs(suite, ["pass"], tool_version="parcel 2.3.1")
    worse, still = measured_runs(suite, ["fail", "fail"], tool_version="parcel 2.4.0")
    for run in (worse, still):
        store_verdict(run, "regressed", 0.9, 0.78)
    sentence = f"Pass rate of git-basics fell 12 points with parcel 2.4.0 on {day_of(worse)}, run {worse.pk}."
    assert lead(signed_in()) == sentence


def test_a_verdict_that_is_over_says_since_when(signed_in, suite):
    _, worse, over = measured_runs(suite, ["pass", "fail", "pass"])
    store_verdict(worse, "regressed", 0.9, 0.78)
    store_verdict(over, "no_evidence", 0.9, 0.9)
    assert lead(signed_in()).endswith(f"run {worse.pk}. As before again since run {over.pk}.")


def test_a_later_change_point_is_the_last_change(signed_in, suite):
    runs = measured_runs(suite, ["pass"] * 6 + ["fail"] * 5)
    store_verdict(runs[2], "improved", 0.5, 1.0)
    assert f"fell 100 points on {day_of(runs[6])}, run {runs[6].pk}." in lead(signed_in())


def test_a_chosen_measure_has_its_own_last_change(signed_in, suite):
    runs = measured_runs(suite, ["pass"] * 3)
    store_verdict(runs[2], "regressed", 0.9, 0.78)
    store_verdict(runs[1], "improved", 0.3, 0.2, measure="error_rate")
    assert lead(signed_in(), "?measure=interaction/error_rate").startswith(
        "Error rate of git-basics fell 10 "
    )
    assert lead(signed_in()).startswith("Pass rate of git-basics fell 12 ")


def test_without_a_change_the_page_says_so(signed_in, suite):
    measured_runs(suite, ["pass", "pass"])
    assert lead(signed_in()) == "No change found in the last 2 runs of git-basics."


def test_verdicts_of_experiments_are_no_change(signed_in, suite):
    *_, experiment = measured_runs(suite, ["pass", "fail"], is_experiment=True)
    store_verdict(experiment, "regressed", 0.9, 0.78)
    assert lead(signed_in()).startswith("No change found")


def test_a_small_chart_leads_to_its_measure_with_the_filters(signed_in, suite):
    measured_runs(suite, ["pass", "pass"], tool_version="2.0")
    client = signed_in()
    small = parse(client.get("/p/tools/trends/?tool_version=2.0")).link("Error rate")
    page = parse(client.get(f"/p/tools/trends/{small.address}"))
    assert page.all("figure")[0].all("b")[0].text == "Error rate"
    assert (page.field("Measure").value, page.field("Tool version").value) == (
        "interaction/error_rate",
        "2.0",
    )


def signs(client):
    return [sign["aria-label"] for sign in parse(client.get("/p/tools/trends/")).all(".sign")]


def test_flags_are_one_strip_that_names_what_changed(signed_in, suite):
    measured_runs(suite, ["pass"], tool_version="1.0")
    (run,) = measured_runs(suite, ["pass"], tool_version="2.0", guidance=make_guidance(suite.suite, "v2"))
    assert signs(signed_in()) == [f"TG: tool 2.0, v2, run {run.pk}, {day_of(run)}"]


def test_flags_that_would_overlap_are_one(signed_in, suite):
    for number in range(60):
        run = make_run(suite, tool_version=f"{number}.0")
        make_trial(run, "create")
        close(run)
    found = signs(signed_in())
    assert 20 <= len(found) < 59
    assert all("; tool" in each for each in found[:-1])


def test_a_person_annotates_a_run_and_removes_it(signed_in, suite):
    (run,) = measured_runs(suite, ["pass"])
    client = signed_in("runner")
    given = {
        "text": "Moved to a new host.",
        "run": run.pk,
        "suite": "git-basics",
        "query": "suite=git-basics",
    }
    page = parse(client.post("/p/tools/trends/annotations/", given, follow=True))
    assert "Saved the annotation." in page
    assert f"run {run.pk}" in page.region("Annotations")
    (sign,) = page.all(".sign")
    assert sign["aria-label"].startswith(f"✎: Moved to a new host. (run {run.pk}, {day_of(run)}, ")
    note = Annotation.objects.get()
    assert (note.suite, note.day) == (suite.suite, run.finished.date())
    assert "Remove" in page.region("Annotations").buttons[0]
    client.post(f"/p/tools/trends/annotations/{note.pk}/remove/")
    assert not Annotation.objects.exists()
    events = AuditEvent.objects.order_by("pk").values_list("action", flat=True)
    assert list(events) == ["annotation.add", "annotation.remove"]


def test_a_day_is_annotated_between_runs_for_all_suites(signed_in, suite):
    runs = measured_runs(suite, ["pass", "pass", "pass"])
    day = runs[1].finished.date()
    client = signed_in()
    client.post("/p/tools/trends/annotations/", {"text": "Outage", "day": day.isoformat(), "suite": ""})
    (sign,) = parse(client.get("/p/tools/trends/")).all(".sign")
    assert sign["data-at"] == "0.5"
    measured_runs(make_suite(suite.suite.project, ("create", "export"), name="other"), ["pass"])
    assert "Outage" in parse(client.get("/p/tools/trends/?suite=other")).region("Annotations")


def test_it_says_what_an_annotation_lacks(signed_in, suite):
    measured_runs(suite, ["pass"])
    client = signed_in()
    for given, sentence in (
        ({"text": "Note."}, "Choose a run or a day"),
        ({"text": " ", "day": "2026-11-03"}, "Write an annotation"),
        ({"text": "Note.", "day": "3 Nov"}, "Write the day as in"),
        ({"text": "Note.", "run": "999999"}, "There is no run 999999"),
        ({"text": "Note.", "run": "x"}, "There is no run x"),
    ):
        assert sentence in parse(client.post("/p/tools/trends/annotations/", given, follow=True))
        assert not Annotation.objects.exists(), given


def test_runs_of_other_projects_cannot_be_annotated(signed_in, suite):
    theirs = make_run(make_suite(make_project("other")))
    signed_in().post("/p/tools/trends/annotations/", {"text": "Note.", "run": theirs.pk})
    assert not Annotation.objects.exists()


def test_viewers_read_annotations_and_write_none(signed_in, suite):
    (run,) = measured_runs(suite, ["pass"])
    Annotation.objects.create(
        project=run.project, run=run, suite=suite.suite, day=run.created, text="New host"
    )
    client = signed_in("viewer")
    region = parse(client.get("/p/tools/trends/")).region("Annotations")
    assert "New host" in region
    assert region.buttons == []
    assert client.post("/p/tools/trends/annotations/", {"text": "x", "run": run.pk}).status_code == 403


def test_only_its_author_or_an_admin_removes_an_annotation(signed_in, suite):
    measured_runs(suite, ["pass"])
    by = make_member(suite.suite.project, "runner", "grace")
    note = Annotation.objects.create(project=suite.suite.project, day=date(2026, 11, 3), text="Hers", by=by)
    address = f"/p/tools/trends/annotations/{note.pk}/remove/"
    author = signed_in("author")
    assert parse(author.get("/p/tools/trends/")).region("Annotations").buttons == ["Annotate"]
    assert author.post(address).status_code == 403
    assert signed_in("admin").post(address).status_code == 302
    assert not Annotation.objects.exists()


def test_a_text_of_an_annotation_cannot_leave_the_drawing(signed_in, suite):
    (run,) = measured_runs(suite, ["pass"])
    Annotation.objects.create(
        project=run.project, run=run, suite=suite.suite, day=run.created, text="</svg><b>x</b>"
    )
    assert "</svg><b>" not in signed_in().get("/p/tools/trends/").text


def test_the_slider_reads_the_newest_run(signed_in, suite):
    runs = measured_runs(suite, ["pass", "fail"])
    (slider,) = parse(signed_in().get("/p/tools/trends/")).all("[role=slider]")
    assert slider["aria-valuetext"].startswith(f"Run {runs[1].pk}, {day_of(runs[1])}: 0 %")
    assert (slider["aria-valuenow"], slider["aria-valuemax"]) == ("2", "2")
