"""A scenario opened on the comparison page, and the documents of the runs as text."""

from __future__ import annotations

import pytest

from runs.models import Run
from runs.targets.definitions import version_of
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_version,
)
from tests.diverging import ALIKE, GOOD, diverging_runs, run_commands
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/compare/"
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def version(project):
    return make_suite(project, ("create", "export", "list"), name="Basics")


@pytest.fixture
def runs(version):
    return diverging_runs(version)


def shown(client, runs, more="", **headers):
    return parse(client.get(f"{ADDRESS}?runs={','.join(str(run.pk) for run in runs)}{more}", **headers))


def test_the_shared_first_difference_is_above_the_list(signed_in, runs):
    text = shown(signed_in("viewer"), runs)
    assert ALIKE.replace("`", "") in text
    assert text.table("Scenarios").row("create").cell("First different command").text == "deploy --target"
    assert text.table("Scenarios").row("list").cell("First different command").text == "–"


def test_a_scenario_opens_in_its_row_with_and_without_script(signed_in, runs):
    client = signed_in("viewer")
    link = shown(client, runs).table("Scenarios").link("create")
    query = link.address.split("#")[0]
    assert (link["hx-get"], link["aria-expanded"]) == (query, "false")
    whole = parse(client.get(f"{ADDRESS}{query}"))
    part = client.get(f"{ADDRESS}{query}", HTTP_HX_TARGET="scenarios", **HTMX)
    assert "<html" not in part.content.decode()
    for text in (whole, parse(part)):
        (apart,) = text.all(".aligned .is-apart")
        assert apart.text == (
            "2 first difference ✓ succeeded todo deploy --env test ✓ succeeded todo deploy --target test"
        )
        assert "First difference: command 2" in text
        assert "− Deployed." in text
        assert "+ Could not deploy." in text
        assert "file_exists" in text
        assert text.link("create")["aria-expanded"] == "true"


def test_any_two_trials_of_the_scenario_can_be_chosen(signed_in, version):
    base, new = make_run(version), make_run(version)
    for run, outcome in ((base, "pass"), (new, "fail")):
        for index in range(2):
            run_commands(make_trial(run, "create", outcome=outcome, index=index), GOOD)
        close(run)
    client = signed_in()
    trials = [list(run.trial_set.order_by("index").values_list("pk", flat=True)) for run in (base, new)]
    text = shown(client, (base, new), f"&open=create&pair={trials[0][1]},{trials[1][1]}")
    against = f"/p/tools/trials/{trials[1][1]}/against/{trials[0][1]}/"
    assert text.link("Compare these trials").address == against
    for wrong in ("1,2,3", "x,y", f"{trials[1][0]},{trials[0][0]}", "999999,1"):
        first = shown(client, (base, new), f"&open=create&pair={wrong}").link("Compare these trials").address
        assert first == f"/p/tools/trials/{trials[1][0]}/against/{trials[0][0]}/"


def test_an_unknown_scenario_opens_nothing(signed_in, runs):
    assert shown(signed_in(), runs, "&open=nothing").all("tr.detail") == []


def test_an_opened_scenario_costs_few_queries(signed_in, runs, django_assert_max_num_queries):
    client = signed_in()
    with django_assert_max_num_queries(20):
        shown(client, runs, "&open=create")


def test_guidance_that_differs_is_a_text_difference(signed_in, version):
    old, new = (make_guidance(version.suite, name) for name in ("AGENTS.md v1", "AGENTS.md v2"))
    for guidance, line in ((old, "Use --json."), (new, "Use --format json.")):
        guidance.files = [{"path": "AGENTS.md", "content": f"# Todo\n{line}\n"}]
        guidance.save()
    runs = [make_run(version, guidance=each) for each in (old, new)]
    client = signed_in("viewer")
    link = shown(client, runs).link("Guidance difference")
    text = parse(client.get(f"{ADDRESS}{link['hx-get']}", HTTP_HX_TARGET="documents", **HTMX))
    assert "AGENTS.md" in text
    assert "− Use --json." in text
    assert "+ Use --format json." in text
    assert text.link("Guidance difference")["aria-expanded"] == "true"


def test_target_definitions_that_differ_are_a_text_difference(signed_in, version):
    runs = [make_run(version), make_run(version)]
    for run, model in zip(runs, ("small", "large"), strict=True):
        run.target.definition = {"name": "agent", "workers": 3, "model": model}
        Run.objects.filter(pk=run.pk).update(target_version=version_of(run.target))
    text = shown(signed_in("viewer"), runs, "&part=target")
    assert '− "model": "small"' in text
    assert '+ "model": "large"' in text
    assert "workers" not in text.table("Runs compared")


def test_judges_that_differ_are_a_text_difference(signed_in, version):
    runs = [make_run(version, fingerprint={"judge_sha256": each}) for each in ("a" * 8, "b" * 8)]
    judge = make_target(version.suite.project, "grader")
    for run, model in zip(runs, ("small", "large"), strict=True):
        judge.definition = {"name": "grader", "model": model}
        run.judge_versions.set([version_of(judge)])
    text = shown(signed_in("viewer"), runs, "&part=judge")
    assert "grader" in text.headings
    assert '− "model": "small"' in text
    assert '+ "model": "large"' in text


def test_a_runs_page_links_hashes_to_their_text(signed_in, version):
    names = ("guidance", "target_sha256", "judge_sha256", "tool_version", "fixture", "suite_sha256", "rubric")
    old, new = (dict.fromkeys(names, each) for each in ("old", "new"))
    base = make_compared(version, {"create": "pass"}, fingerprint={**old, "suite_version": 1})
    run = make_compared(version, {"create": "pass"}, fingerprint={**new, "suite_version": 3})
    assert run.baseline_id == base.pk
    table = parse(signed_in("viewer").get(f"/p/tools/runs/{run.pk}/")).table("What changed")
    linked = {row.header: row.links["as text"] for row in table.rows if row.links}
    start = f"{ADDRESS}?runs={base.pk},{run.pk}&part="
    assert linked == {
        "Guidance": f"{start}guidance#documents",
        "Target's definition": f"{start}target#documents",
        "Judge's definition": f"{start}judge#documents",
        **dict.fromkeys(
            ("Suite", "Fixture", "Rubric"), "/p/tools/suites/basics/difference/?since=1&version=3"
        ),
    }


def test_suite_versions_that_differ_link_to_their_difference(signed_in, version):
    later = make_version(version.suite, create={"prompt": "Now."})
    text = shown(signed_in("viewer"), [make_run(version), make_run(later)])
    address = "/p/tools/suites/basics/difference/?since=1&version=2"
    assert text.link("Suite difference").address == address


def test_runs_with_the_same_documents_offer_no_difference(signed_in, runs):
    text = shown(signed_in(), runs, "&part=guidance")
    assert "As text" not in text


def test_differing_parts_are_highlighted(signed_in, version):
    runs = [make_run(version, fingerprint={"tool_version": each, "judge": "j"}) for each in ("1.0", "2.0")]
    table = shown(signed_in(), runs).table("Runs compared")
    assert [each.text for each in table.all("mark")] == ["1.0", "2.0"]
