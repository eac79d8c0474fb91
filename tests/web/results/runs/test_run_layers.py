"""The three panels of a run: what they say beside their means."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from evaluators.tool_use.interaction import RULES_VERSION
from runs.compare.comparison import compare_with_baseline
from tests.builders import close, make_run, make_trial, make_version, score, scores_of
from tests.trial_parts import make_judging
from tests.web.results.runs.pages import page

pytestmark = pytest.mark.one_database

HOSTILE = "</code><script>alert(1)</script>\u202e"


def judged_run(version, threshold=0.7, **fields):
    """Return a closed run of three trials, of which the judge lets two pass."""
    content = {"criteria": {"judge": {"pass_threshold": threshold}}}
    run = make_run(make_version(version.suite, create=content, export={}), **fields)
    for outcome in ("pass", "pass", "fail"):
        scores = [
            *scores_of(outcome),
            score("judge", "criterion.correctness", 0.6, weight=3.0),
            score("interaction", "completed", float(outcome == "pass")),
        ]
        make_judging(make_trial(run, "create", outcome=outcome, scores=scores))
    return close(run)


def test_the_panels_have_shares_their_source_the_threshold_and_statements(signed_in, version):
    run = judged_run(version, fingerprint={"judge": "judge-1"})
    shown = page(signed_in(), run)
    assert shown.table("1 Interaction").row("Completed").cell("Mean").text == "67 % 2/3"
    assert "Source: structured events (3 of 3 trials)" in shown
    judge = shown.region("Layer 3, judge")
    assert "mean, 2 of 3 ≥ 0.70" in judge and "judge-1" in judge.text
    row = judge.table("3 Judge").row("Correctness 75 %")
    assert row.cell("Bar").all("[role=img]")[0].name == "0.60 of 1, threshold 0.70"
    (issue,) = shown.all("li.is-issue")
    assert issue.text == "Guessed a flag. 3 trials"
    assert issue.all(".nowrap")[0].link("3 trials").address.endswith("#judge")
    make_trial(run, "export", detail={"interaction": {"available": True, "source": "transcript"}})
    source = "Source: structured events (3 of 4 trials), transcript text, estimated (1 of 4 trials)"
    assert source in page(signed_in(), close(run))


def test_the_gate_that_fails_most_often_leads_to_its_first_trial(signed_in, version):
    run = judged_run(version)
    failed = run.trial_set.get(outcome="fail")
    make_trial(run, "create", outcome="fail", scores=[score("gates", "script", 0.0, False)])
    make_trial(run, "create", outcome="fail")
    gates = page(signed_in(), close(run)).region("Layer 2, gates")
    assert "Fails most often: file_exists: out.txt does not exist. 2 trials" in gates
    assert gates.link("2 trials").address == f"/p/tools/trials/{failed.pk}/#gates"


@pytest.mark.parametrize("state", ["finished", "running"])
def test_trials_that_were_falsely_done_are_shown(signed_in, version, state):
    run = make_run(version, state=state)
    for passed in (True, False):
        completed = score("interaction", "completed", 1.0)
        make_trial(run, "create", scores=[completed, score("gates", "script", float(passed), passed)])
    shown = page(signed_in(), run if state == "running" else close(run))
    assert "False done 50 %" in shown.region("Layer 2, gates")


def first_try(run, **values):
    """Add a trial with this rate for each scenario, without one where it is None, and close the run."""
    for key, value in values.items():
        interaction = [] if value is None else [score("interaction", "first_try_success_rate", value)]
        make_trial(run, key, scores=[score("gates", "script", 1.0, True), *interaction])
    return close(run)


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ({"create": 0.5, "export": 1.0}, {"create": 0.5}, "50 % → 50 %"),
        ({"create": 0.5}, {"create": 0.75, "export": 0.0}, "50 % → 75 %"),
        ({"create": 0.5, "export": 1.0}, {"create": 0.75, "export": None}, "50 % → 75 %"),
        ({"create": 0.5, "export": 1.0}, {"create": 0.1, "export": 1.0}, "75 % → 55 %"),
    ],
    ids=["removed", "added", "unmeasured", "same"],
)
def test_means_are_compared_over_shared_scenarios(signed_in, version, before, after, shown):
    run = first_try(make_run(version, baseline=first_try(make_run(version), **before)), **after)
    compare_with_baseline(run)
    row = page(signed_in(), run).table("1 Interaction").row("First-try success")
    assert row.cell("Mean").text == shown
    (picture,) = row.cell("Change").all("[role=img]")
    assert (
        picture.name.replace("\xa0", " ") == f"First-try success: {shown.replace('→', 'to')}, too little data"
    )


def test_only_a_verdict_colours_a_mean(signed_in, version):
    keys = [f"s{n}" for n in range(12)]
    several = make_version(version.suite, **{key: {} for key in keys})
    before = first_try(make_run(several), **dict.fromkeys(keys, 0.9))
    run = first_try(make_run(several, baseline=before), **dict.fromkeys(keys, 0.2))
    compare_with_baseline(run)
    (picture,) = page(signed_in(), run).table("1 Interaction").row("First-try success").all("[role=img]")
    assert picture.name.replace("\xa0", " ") == "First-try success: 90 % to 20 %, regressed"
    assert "worse" in picture["class"]


def test_the_judges_scores_are_drawn_before_and_after(signed_in, version):
    before = judged_run(version)
    run = judged_run(version, baseline=before)
    compare_with_baseline(run)
    row = page(signed_in(), run).table("3 Judge").row("Correctness 75 %")
    assert row.cell("Score").text == "0.60 → 0.60"
    assert row.all("[role=img]")[0].name.startswith("Correctness: 0.60 to 0.60, ")


def test_gates_are_drawn_before_and_after(signed_in, version):
    keys = [f"s{n}" for n in range(12)]
    several = make_version(version.suite, **{key: {} for key in keys})
    before = first_try(make_run(several), **dict.fromkeys(keys))
    run = make_run(several, baseline=before)
    for key in keys:
        make_trial(run, key, outcome="fail", scores=[score("gates", "script", 0.0, False)])
    compare_with_baseline(close(run))
    row = page(signed_in(), run).table("2 Gates").row("script")
    assert row.cell("Passed").text == "0 /12"
    (picture,) = row.all("[role=img]")
    assert picture.name.replace("\xa0", " ") == "script: 100 % to 0 %, regressed"


def test_earlier_runs_are_behind_the_dots(signed_in, version):
    def shown(run):
        compare_with_baseline(run)
        layers = page(signed_in(), run).region("Three layers")
        (picture,) = layers.table("1 Interaction").row("First-try success").all("[role=img]")
        return picture.name.replace("\xa0", " ").partition("; ")[2], "Grey: earlier runs." in layers

    earlier = [first_try(make_run(version), create=share) for share in (0.5, 1.0)]
    third = first_try(make_run(version, baseline=earlier[-1]), create=0.6)
    assert shown(third) == ("", False)
    fourth = first_try(make_run(version, baseline=third), create=0.25)
    assert shown(fourth) == ("earlier runs 50 % to 100 %", True)
    # A line has other runs than those before, which its verdict was made with.
    line = [first_try(make_run(version), create=share) for share in (0.4, 0.5, 0.6)]
    fourth.old_side |= {"runs": [each.pk for each in line]}
    fourth.save()
    layers = page(signed_in(), fourth).region("Three layers")
    (picture,) = layers.table("1 Interaction").row("First-try success").all("[role=img]")
    assert picture.name.replace("\xa0", " ").endswith("earlier runs 40 % to 60 %")


def test_a_mean_without_baseline_has_no_column(signed_in, version):
    run = make_run(version, baseline=first_try(make_run(version), create=0.5))
    compare_with_baseline(first_try(run, export=0.5))
    table = page(signed_in(), run).table("1 Interaction")
    assert table.columns == ["Measure", "Mean"]
    assert table.row("First-try success").texts == ["First-try success", "50 %"]


def test_a_mean_without_a_counterpart_is_not_comparable(signed_in, version):
    run = first_try(make_run(version), create=0.5)
    new = make_run(version, baseline=run)
    scores = [score("interaction", name, 0.5) for name in ("first_try_success_rate", "error_rate")]
    make_trial(new, "create", scores=scores)
    compare_with_baseline(close(new))
    row = page(signed_in(), new).table("1 Interaction").row("Error rate")
    assert row.cell("Change").text == "not comparable"


def test_differing_thresholds_are_not_shown_as_one(signed_in, version):
    run = judged_run(version)
    contents = {"create": 0.7, "export": 0.9}
    content = {key: {"criteria": {"judge": {"pass_threshold": each}}} for key, each in contents.items()}
    other = make_run(make_version(version.suite, **content))
    for key in contents:
        make_judging(make_trial(other, key))
    assert "mean, 2 of 2 passed" in page(signed_in(), close(other))
    assert "mean, 2 of 3 ≥ 0.70" in page(signed_in(), run)


def test_hostile_reasons_of_gates_stay_text(signed_in, version):
    run = make_run(version)
    make_trial(run, outcome="fail", scores=[score("gates", HOSTILE, 0.0, False, message=HOSTILE)])
    gates = page(signed_in(), close(run)).region("Layer 2, gates")
    shown = "</code><script>alert(1)</script>⟨U+202E⟩"
    assert f"Fails most often: {shown}: {shown}" in gates
    assert gates.all("script") == []


def test_an_unused_layer_says_so_once(signed_in, version):
    run = make_run(version)
    make_trial(run, scores=[], detail={})
    layers = page(signed_in(), close(run)).region("Three layers")
    for sentence in ("No gate results in this run.", "No judge results.", "No tool commands found."):
        assert layers.count(sentence) == 1
    for empty in ("0 judgments", "0 of 0", "0 trials", "(0 of"):
        assert empty not in layers


def test_judgings_without_any_score_are_not_left_without_a_word(signed_in, version):
    run = make_run(version)
    for _ in range(2):
        make_judging(make_trial(run, scores=[]), content={"negatives": [], "positives": [], "error": "No."})
    assert "The judge gave no score." in page(signed_in(), close(run))


def test_text_only_commands_name_the_transcript(signed_in, version):
    run = make_run(version)
    scores = [score("interaction", "total_commands", 0.0)]
    make_trial(run, scores=scores, detail={"interaction": {"available": False, "source": "transcript"}})
    text = page(signed_in(), close(run))
    assert "Source: transcript text, estimated (1 of 1 trial)" in text
    assert "structured events" not in text


def test_an_open_run_counts_its_finished_trials(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, outcome="", scores=[])
    client = signed_in()
    text = page(client, run)
    assert "No trials finished yet." in text
    assert "No judge results yet." in text
    make_trial(run, scores=[])
    assert "1 of 2 trials finished; numbers may change." in page(client, run)


def test_an_open_run_has_the_means_of_its_trials_so_far(signed_in, version):
    before = judged_run(version)
    run = make_run(version, state="running", baseline=before)
    for outcome, value in (("pass", 0.5), ("fail", 1.0), ("error", 0.0)):
        scores = [
            score("interaction", "first_try_success_rate", value),
            score("judge", "judge", 0.4),
            score("judge", "criterion.correctness", 0.25),
        ]
        make_trial(run, "create", outcome=outcome, scores=scores)
    make_trial(run, "create", outcome="")
    layers = page(signed_in(), run).region("So far")
    # Only finished runs are compared, so there is no third column.
    assert layers.table("1 Interaction").row("First-try success").texts == ["First-try success", "75 %"]
    judge = layers.region("Layer 3, judge")
    assert "3 Judge 0.40" in judge
    assert judge.table("3 Judge").row("Correctness").cell("Score").text == "0.25"
    assert "3 of 4 trials finished; numbers may change." in layers
    assert "No judge results" not in judge


def test_an_open_run_without_commands_says_so(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, outcome="")
    assert "No tool commands yet." in page(signed_in(), run)


def counted_run(version, *interactions):
    """Return a closed run of a trial for each of these metrics, by the current rules."""
    run = make_run(version)
    for each in interactions:
        known = {"available": True, "source": "events", "ends": "reported", "rules": RULES_VERSION, **each}
        make_trial(run, "create", detail={"interaction": known})
    return close(run)


def test_known_and_unknown_ends_are_shown_beside_each_other(signed_in, version):
    some = {"total_commands": 12, "known": 7, "unknown_exit": 5, "not_run": 2}
    made = {"total_commands": 7, "known": 5, "unknown_exit": 2, "estimated": 1, "indirect_by": {"make": 34}}
    layer = page(signed_in(), counted_run(version, some, made)).region("Layer 1, interaction")
    assert "7 of 19 unknown, 1 estimated from text, 2 not run, and 34 calls by make." in layer


def test_rates_are_not_shown_below_three_known_ends(signed_in, version):
    run = counted_run(version, {"total_commands": 9, "known": 2, "unknown_exit": 7})
    table = page(signed_in(), run).table("1 Interaction")
    for name in ("Error rate", "First-try success"):
        assert table.row(name).cell("Mean").text == "n/a"
    assert table.row("Commands").cell("Mean").text == "4.0"


def test_what_mentions_the_tool_comes_with_a_hint(signed_in, version):
    layer = page(signed_in(), counted_run(version, {"total_commands": 4, "known": 4, "mentioned": 3})).region(
        "Layer 1, interaction"
    )
    assert "3 commands mention the tool and were not counted." in layer and "command_pattern" in layer


def test_recorded_trials_are_named_as_the_source(signed_in, version):
    run = counted_run(version, {"source": "recorded", "ends": "recorded", "total_commands": 4, "known": 4})
    assert "Source: recorded (1 of 1 trial)" in page(signed_in(), run)


def test_trials_whose_judge_added_up_wrongly_are_counted(signed_in, client, version):
    run = make_run(version)
    trial = make_trial(run, "create")
    make_judging(trial, score=0.95, content={"mismatch": True, "recomputed": 0.1})
    make_judging(trial, score=0.9, content={"mismatch": True, "recomputed": 0.1}, counts=False)
    make_judging(make_trial(run, "export"), score=0.8, content={"mismatch": False, "recomputed": 0.8})
    judge = page(signed_in(), close(run)).region("Layer 3, judge")
    assert "The judge's total contradicts its weighted criteria in 1 trial." in judge
    assert judge.link("1 trial").address == f"/p/tools/trials/{trial.pk}/#judge"
    out = StringIO()
    call_command("show_run", str(run.pk), stdout=out)
    said = " ".join(out.getvalue().split())
    assert said.count("The judge reported 0.95, but its criteria give 0.10 by the rubric's weights.") == 1
