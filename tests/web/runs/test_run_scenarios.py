"""The scenarios and trials on a run's page: in parts, narrowed, opened."""

from __future__ import annotations

from tests.builders import make_run, make_suite, make_trial
from tests.web.runs.pages import address, page


def test_a_chip_narrows_the_scenarios(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", outcome="fail")
    make_trial(run, "export")
    response = signed_in().get(address(run) + "?show=failing")
    assert [row.key for row in response.context["rows"]] == ["create"]


def test_a_scenario_that_went_well_opens_when_it_is_asked_for(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, "create")
    client = signed_in()
    assert f"/p/tools/trials/{trial.pk}/" not in page(client, run)
    assert f"/p/tools/trials/{trial.pk}/" in page(client, run, "?open=create")


def test_htmx_gets_the_scenarios_alone(signed_in, version):
    run = make_run(version)
    make_trial(run)
    headers = {"HX-Request": "true", "HX-Target": "trials"}
    text = signed_in().get(address(run), headers=headers).content.decode()
    assert "<html" not in text
    assert "Scenarios and trials" in text


def test_many_scenarios_are_shown_in_parts(signed_in, project):
    keys = tuple(f"case-{n:02}" for n in range(60))
    run = make_run(make_suite(project, keys))
    for key in keys:
        make_trial(run, key)
    client = signed_in()
    first, second = page(client, run), page(client, run, "?from=50")
    assert "case-49" in first
    assert "case-50" not in first
    assert "from=50#trials" in first
    assert "case-59" in second
    assert "Next scenarios" not in second
