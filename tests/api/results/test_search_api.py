"""Search over REST."""

from __future__ import annotations

from runs.results.search.trial_search import index_trials
from tests.builders import make_project, make_run, make_suite, make_trial


def test_it_finds_trials_with_passage_and_marks(api, project):
    run = make_run(make_suite(project, ("create",), name="Basics"))
    trial = make_trial(run, "create", outcome="fail", answer="I could not deploy it.")
    other = make_run(make_suite(make_project("other"), ("create",)))
    unseen = make_trial(other, "create", answer="Deploy.")
    index_trials([trial.pk, unseen.pk])
    found = api("viewer").get("/search", q="deploy", outcome="fail").json()
    assert found["total"] == 1
    (hit,) = found["items"]
    assert (hit["trial"], hit["run"], hit["suite"], hit["scenario"]) == (trial.pk, run.pk, "basics", "create")
    assert (hit["place"], hit["passage"]) == ("answer", "I could not deploy it.")
    assert [hit["passage"][start:end] for start, end in hit["marks"]] == ["deploy"]
    assert hit["url"] == f"/trials/{trial.pk}/"


def test_a_search_needs_a_text_and_a_token(api, project):
    assert api("viewer").get("/search").status_code == 422
    assert api("viewer").get("/search", q="").status_code == 422
    assert api("viewer").get("/search", q="x", place="elsewhere").status_code == 422
    assert api("").get("/search", q="x").status_code == 401
