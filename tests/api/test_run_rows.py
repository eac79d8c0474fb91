"""The list of runs keeps the shape that it promises, though no row of it is checked on its way out."""

from __future__ import annotations

from evalhub.web.rest.pages import PageOut
from runs.api.schemas import RunRowOut
from tests.builders import make_guidance, make_member, make_run, make_suite, make_target, make_trial


def test_a_row_of_the_list_says_what_the_run_itself_does(api, project):
    make_target(project)
    suite = make_suite(project)
    by = make_member(project, "runner", name="ann")
    guided = make_run(suite, guidance=make_guidance(suite.suite), by=by, tags=["nightly"])
    run = make_run(suite, baseline=guided, fingerprint={"staleness": {"stale": True}})
    for each in (guided, run):
        make_trial(each)
    client = api()
    body = client.get("/runs").json()
    assert PageOut[RunRowOut].model_validate(body, strict=True).model_dump() == body
    assert [row["stale"] for row in body["items"]] == [True, False]
    for row in body["items"]:
        alone = client.get(f"/runs/{row['id']}").json()["run"]
        assert row == {name: alone[name] for name in row}
