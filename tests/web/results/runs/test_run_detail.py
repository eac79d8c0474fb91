"""One run: what its page says of its layers, its baseline and its preparation."""

from __future__ import annotations

import pytest

from runs.compare.baselines import set_baseline
from runs.exchange.exports.console import summary_lines
from runs.exchange.exports.document import run_digest
from runs.models import Change, Launch
from runs.workers.claims import MOST_STARTS
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_run,
    make_target,
    make_trial,
    make_version,
    used,
)
from tests.runs.carrying import launch, lose_preparations
from tests.trial_parts import make_judging
from tests.web.results.runs.pages import address, page, tried

pytestmark = pytest.mark.one_database


def test_it_works(signed_in, version):
    run = make_run(version, fingerprint={"tool": "taskmgr 2.4.0"})
    make_trial(run, "create", outcome="fail", detail=used({"name": "import", "calls": 10, "errors": 5}))
    make_judging(make_trial(run, "export"))
    text = page(signed_in(), close(run))
    for expected in (
        "1 trial failed",
        "First-try success",
        "file_exists",
        "Guessed a flag.",
        "Opened help after the failure.",
        "import",
        "out.txt does not exist.",
        "taskmgr 2.4.0",
    ):
        assert expected in text


def test_a_run_without_gates_says_so(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", scores=[])
    closed, still = page(signed_in(), close(run)), page(signed_in(), make_run(version, state="queued"))
    assert closed.region("Layer 2, gates").text == "2 Gates none No gate results in this run."
    assert still.region("Layer 2, gates").text == "2 Gates no results yet No gate results yet."


def test_it_counts_gates_over_trials(signed_in, version):
    run = make_run(version)
    for outcome in ("pass", "pass", "fail"):
        make_trial(run, "create", outcome=outcome)
    text = page(signed_in(), close(run))
    row = text.table("2 Gates").row("file_exists")
    assert row.cell("Passed").text == "2 /3"
    assert row.cell("Share").all("[role=img]")[0].name == "2 of 3 passed"


def test_errors_are_left_out_of_the_rate(signed_in, version):
    run = make_run(version)
    make_trial(run, "create")
    make_trial(run, "create", outcome="error", error="No answer from the provider.")
    text = page(signed_in(), close(run))
    assert text.table("Scenarios").row("create").cell("Passed").text == "100 % 1/1"
    assert "No answer from the provider." in text
    assert "Errors are excluded from every rate." in text


def test_it_shows_what_regressed_since_the_baseline(signed_in, version):
    before = make_run(version)
    make_trial(before, "create")
    run = make_run(version, baseline=before)
    make_trial(run, "create", outcome="fail")
    text = page(signed_in(), close(run))
    assert "1 scenario no longer passes" in text
    assert "▼ lost 1 of 1 passes" in text
    assert text.table("Changed scenarios").row("create").cell("Change").text == "▼ no longer passes"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"guidance": True},
            "configuration changed Guidance, model or judge changed after run {}, so this difference isn't counted as the tool's.",
        ),
        ({"options": {"baseline": "last-pass"}}, "against run {} (selected: the last run that passed)"),
        ({"is_experiment": True}, "An experiment: it raises no alert and is never a baseline."),
    ],
    ids=["guidance", "last-pass", "experiment"],
)
def test_a_verdict_says_what_is_special_about_it(signed_in, version, changes, sentence):
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    before = tried(version, "pass", "pass", trials=6, launch=launch)
    if changes.get("guidance"):
        changes = {"guidance": make_guidance(version.suite)}
    after = tried(version, "pass", "fail", trials=6, launch=launch, **changes)
    assert sentence.format(before.pk) in page(signed_in(), after)


def test_an_undecided_loss_leads_with_its_size(signed_in, version):
    tried(version, "pass", "pass")
    text = page(signed_in(), tried(version, "pass", "fail"))
    assert "Worse by 50 points, undecided: pass rate fell from 100 % to 50 %" in text


def test_a_run_that_shares_no_scenario_shows_both_rates(signed_in, version):
    before = tried(version, "pass", "pass", trials=3)
    changed = make_version(version.suite, create={"prompt": "Another."}, export={"prompt": "Another."})
    after = make_compared(changed, {"create": "fail", "export": "pass"}, trials=3)
    text = page(signed_in(), after)
    assert f"Run {before.pk}: pass rate 100 % (6/6, 95 % interval 61 % to 100 %);" in text
    assert f"Run {after.pk}: pass rate 50 % (3/6, 95 % interval 19 % to 81 %)." in text


@pytest.mark.parametrize(("before", "now"), [("pass", "error"), ("error", "pass")])
def test_a_scenario_with_errors_only_has_no_verdict(signed_in, version, before, now):
    baseline = make_run(version)
    run = make_run(version, baseline=baseline)
    make_trial(baseline, "create", outcome=before, error="Asleep." if before == "error" else "")
    make_trial(run, "create", outcome=now, error="Asleep." if now == "error" else "")
    close(baseline)
    text = page(signed_in(), close(run))
    assert text.table("Changed scenarios").row_names[0].startswith("create")
    assert len(text.table("Changed scenarios").rows) == 1
    assert "No scenario stopped passing, ! 1 with errors only." in text
    assert text.table("Changed scenarios").row("create").cell("Change").text == "errors only"
    assert text.table("Scenarios").row("create").cell("vs. baseline").text == "–"
    assert not {"regressed", "improved"} & set(text.badges)
    for word in ("newly passing", "No scenario changed"):
        assert word not in text
    assert not Change.objects.filter(run=run).exists()


def test_it_shows_why_preparation_failed(signed_in, version):
    run = make_run(version, error="No executable 'codex' on PATH. Install it on the worker.", outcome="error")
    text = page(signed_in(), run)
    assert "This run could not be prepared" in text
    assert "No executable 'codex' on PATH." in text


def test_an_unprepared_run_shows_no_trial_results(signed_in, version):
    run = make_run(version, error="The target is asleep.", outcome="error")
    make_trial(run, outcome="", state="cancelled", seconds=None)
    run.outcome = "error"
    run.save()
    text = page(signed_in(), run)
    assert "The target is asleep." in text
    for nothing in ("hit an error", "Three layers", "0 passed"):
        assert nothing not in text


def test_a_run_without_trials_offers_no_way_to_narrow_them(signed_in, version):
    trials = page(signed_in(), make_run(version)).region("Scenarios and trials")
    assert "This run has no trials." in trials
    assert trials.links == {}


def test_it_shows_that_preparation_killed_its_workers(signed_in, version):
    make_target(version.suite.project)
    run = launch(version).runs.get()
    lose_preparations(run, MOST_STARTS)
    reason = "The worker was lost 5 times while it prepared this run."
    text = page(signed_in(), run)
    assert "This run could not be prepared" in text
    assert reason in text
    assert reason in summary_lines(run_digest(run.pk, most=1))


def test_it_shows_warnings(signed_in, version):
    assert "The judge judges itself." in page(
        signed_in(), make_run(version, warnings=["The judge judges itself."])
    )


def test_it_groups_the_diagnosis_over_trials(signed_in, version):
    run = make_run(version)
    for _ in range(2):
        make_trial(run, "create", detail=used({"name": "add", "calls": 5, "retries_after_failure": 4}))
    text = page(signed_in(), run)
    assert "Retries on a command" in text
    assert "2 of 2 trials, 1 of 1 scenario:" in text


def test_it_makes_as_many_queries_for_many_trials_as_for_few(
    signed_in, version, django_assert_max_num_queries
):
    run = make_run(version)
    for _ in range(12):
        make_judging(make_trial(run, "create"))
    close(run)
    client = signed_in()
    with django_assert_max_num_queries(15):
        client.get(address(run))


def test_a_pinned_run_with_a_baseline_takes_twenty_queries(signed_in, version, django_assert_max_num_queries):
    before = make_run(version)
    make_trial(before, "create")
    run = make_run(version, baseline=close(before))
    make_trial(run, "create", outcome="fail")
    client, run = signed_in(), close(run)
    set_baseline(run, by=None)
    with django_assert_max_num_queries(20):
        page(client, run)


def test_it_shows_what_each_evaluator_scores(signed_in, version):
    run = make_run(version)
    for score in (0.4, 0.6):
        scores = [
            {"layer": "evaluators", "name": "trajectory", "value": 1.0, "passed": None, "message": ""},
            {"layer": "evaluators", "name": "score", "value": score, "passed": False, "message": "Below 1."},
        ]
        make_trial(run, "create", outcome="fail", scores=scores)
    table = page(signed_in(), close(run)).table("Evaluator scores (mean)")
    assert [row.texts[:2] for row in table.rows] == [["score", "0.50"], ["trajectory", "1.00"]]


def test_the_fingerprint_shows_every_part_in_two_columns(signed_in, version):
    parts = {"tool": "taskmgr 2.4.0", "guidance": "a41f7d20", "judge": "judge-1"}
    fingerprint = page(signed_in(), make_run(version, fingerprint=parts)).region("Fingerprint")
    assert [len(column.facts) for column in fingerprint.all("dl")] == [2, 1]
    assert set(fingerprint.facts.values()) == set(parts.values())
    one = page(signed_in(), make_run(version, fingerprint={"tool": "taskmgr 2.4.0"}))
    assert len(one.region("Fingerprint").all("dl")) == 1


def test_the_fingerprint_shows_names_before_hashes(signed_in, version):
    fingerprint = {
        "suite_version": 7,
        "suite_sha256": "c91e04b7" * 8,
        "fixture": "70b2d9e1" * 8,
        "rubric": "e2c8105f" * 8,
    }
    fingerprint |= {"provider": "claude_code", "provider_version": "2.1.197"}
    fingerprint |= {"target": "claude-code", "target_sha256": "5d1f9a02" * 8}
    names = {"fixture": "workspace <b>", "rubric": "capture"}
    text = page(signed_in(), make_run(version, fingerprint={**fingerprint, "names": names}))
    assert text.region("Fingerprint").facts == {
        "Suite version": f"{version.suite.name} v7 c91e04b7",
        "Fixture": "workspace <b> 70b2d9e1",
        "Rubric": "capture e2c8105f",
        "Target": "claude-code 5d1f9a02",
        "Provider": "claude_code 2.1.197",
    }
    older = page(signed_in(), make_run(version, fingerprint=fingerprint)).region("Fingerprint")
    assert older.facts["Fixture"] == "70b2d9e1"


def test_an_unprepared_run_has_no_fingerprint(signed_in, version):
    client = signed_in()
    assert "Available once the run is prepared." in page(client, make_run(version, state="queued"))
    assert "the run was not prepared" in page(client, make_run(version, outcome="error"))


def test_a_finished_run_links_to_its_baseline_comparison(signed_in, version):
    before = make_run(version)
    make_trial(before, "create")
    run = make_run(version, baseline=close(before))
    make_trial(run, "create")
    client, link = signed_in(), f"/p/tools/compare/?runs={before.pk},{run.pk}"
    assert page(client, close(run)).link("Compare with baseline").address == link
    assert client.get(link).status_code == 200
    for other in (before, make_run(version, baseline=before, state="running")):
        assert "Compare with baseline" not in page(client, other)


@pytest.mark.parametrize(
    ("errors", "warnings", "times"),
    [
        (["No key.", "No key."], [], 1),
        (["No key.", "No quota."], [], 0),
        (["No key.", "No key."], ["The first 3 trials could not start: No key."], 0),
    ],
    ids=["shared", "different", "in a warning"],
)
def test_a_cause_that_all_trials_share_is_shown_once(signed_in, version, errors, warnings, times):
    run = make_run(version, outcome="error", warnings=warnings)
    for index, error in enumerate(errors):
        make_trial(run, index=index, outcome="error", error=error)
    outcome = page(signed_in(), close(run)).region("Outcome")
    assert outcome.text.count("All for the same reason: No key.") == times
