"""A row of a run is the same in the list, by itself and in exports."""

from __future__ import annotations

from runs.exchange.exports.document import run_document
from tests.builders import make_guidance, make_member, make_run, make_suite, make_target, make_trial


def test_list_run_export_and_comparison_agree(api, project):
    make_target(project)
    suite = make_suite(project)
    by = make_member(project, "runner", name="ann")
    guided = make_run(suite, guidance=make_guidance(suite.suite), by=by, tags=["nightly"])
    run = make_run(suite, baseline=guided, fingerprint={"staleness": {"stale": True}})
    for each in (guided, run):
        make_trial(each)
    client = api()
    body = client.get("/runs").json()
    assert [row["stale"] for row in body["items"]] == [True, False]
    for row in body["items"]:
        alone = client.get(f"/runs/{row['id']}").json()["run"]
        exported = run_document(row["id"])["run"]
        compared = client.get(f"/compare?runs={row['id']}").json()["runs"]
        assert [row, row] == [{name: each[name] for name in row} for each in (alone, exported)]
        assert compared == [row]
