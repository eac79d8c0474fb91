"""The three panels of a run: what they say beside their means."""

from __future__ import annotations

import json
import re

import pytest

from runs.models import RunDigest
from tests.builders import close, make_run, make_trial, make_version, score, scores_of
from tests.trial_parts import make_judging
from tests.web.runs.pages import page

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


def test_completed_is_told_as_a_share_of_the_trials(signed_in, version):
    text = page(signed_in(), judged_run(version))
    assert '<th scope="row">Completed</th><td class="num">66.7%<span class="of">2/3</span></td>' in text


def test_the_interaction_says_how_many_trials_had_structured_events(signed_in, version):
    run = judged_run(version)
    assert "From structured events in 3 of 3 trials.<" in page(signed_in(), run)
    make_trial(run, "export", detail={"interaction": {"available": True, "source": "transcript"}})
    assert "From structured events in 3 of 4 trials, from the text of 1.<" in page(signed_in(), close(run))


def test_the_gate_that_fails_most_often_leads_to_its_first_trial(signed_in, version):
    run = judged_run(version)
    failed = run.trial_set.get(outcome="fail")
    make_trial(run, "create", outcome="fail", scores=[score("gates", "script", 0.0, False)])
    make_trial(run, "create", outcome="fail")
    assert (
        "Fails most often: <code>file_exists</code>: out.txt does not exist. "
        f'<a href="/p/tools/trials/{failed.pk}/#gates">2 trials</a>'
    ) in page(signed_in(), close(run))


def test_the_judge_says_how_many_trials_reach_its_threshold(signed_in, version):
    run = judged_run(version, fingerprint={"judge": "judge-1"})
    text = page(signed_in(), run).partition("3 Judge")[2]
    assert '<span class="of">mean, 2 of 3 ≥ 0.70</span>' in text
    assert 'Correctness<span class="of">75 %</span>' in text
    assert 'aria-label="0.60 of 1, threshold 0.70"' in text
    assert '<p class="muted"><small>judge-1</small></p>' in text


def first_try(run, **values):
    """Add a trial with this rate for each scenario, without one where it is None, and close the run."""
    for key, value in values.items():
        told = [] if value is None else [score("interaction", "first_try_success_rate", value)]
        make_trial(run, key, scores=[score("gates", "script", 1.0, True), *told])
    return close(run)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"create": 0.5, "export": 1.0}, {"create": 0.5}, "= 0"),
        ({"create": 0.5}, {"create": 0.75, "export": 0.0}, "▲ 0.25"),
        ({"create": 0.5, "export": 1.0}, {"create": 0.75, "export": None}, "▲ 0.25"),
        ({"create": 0.5, "export": 1.0}, {"create": 0.1, "export": 1.0}, "▼ 0.20"),
    ],
    ids=["removed", "added", "unmeasured", "same"],
)
def test_means_are_held_against_those_of_the_scenarios_that_both_runs_have(
    signed_in, version, before, after, change
):
    run = make_run(version, baseline=first_try(make_run(version), **before))
    text = page(signed_in(), first_try(run, **after))
    cell = re.search(r'First-try success</th><td class="num">[^<]*</td><td class="num \w+">(.*?)</td>', text)
    assert cell and cell[1] == change


def test_a_mean_that_is_held_against_nothing_has_no_empty_column(signed_in, version):
    run = make_run(version, baseline=first_try(make_run(version), create=0.5))
    text = page(signed_in(), first_try(run, export=0.5))
    assert '<th scope="row">First-try success</th><td class="num">0.50</td></tr>' in text
    assert "<th>Measure</th><th>Mean</th></tr>" in text


def test_one_mean_that_is_held_against_nothing_beside_others_says_so(signed_in, version):
    run = first_try(make_run(version), create=0.5)
    new = make_run(version, baseline=run)
    told = [score("interaction", name, 0.5) for name in ("first_try_success_rate", "error_rate")]
    make_trial(new, "create", scores=told)
    (row,) = re.findall(r'<tr><th scope="row">Error rate</th>.*?</tr>', page(signed_in(), close(new)))
    assert '<span class="visually-hidden">not compared</span>' in row


def test_thresholds_that_differ_are_not_told_as_one(signed_in, version):
    run = judged_run(version)
    contents = {"create": 0.7, "export": 0.9}
    content = {key: {"criteria": {"judge": {"pass_threshold": each}}} for key, each in contents.items()}
    other = make_run(make_version(version.suite, **content))
    for key in contents:
        make_judging(make_trial(other, key))
    assert "mean, 2 of 2 pass<" in page(signed_in(), close(other))
    assert "mean, 2 of 3 ≥ 0.70<" in page(signed_in(), run)


def test_a_run_of_an_older_digest_shows_what_it_tells(signed_in, version):
    run = judged_run(version)
    digest = RunDigest.objects.get(run=run)
    content = json.loads(bytes(digest.content))
    assert content.pop("layers")
    digest.content = json.dumps(content).encode()
    digest.save()
    text = page(signed_in(), run)
    assert '<span class="of">mean, 3 judgings</span>' in text
    assert '<th scope="row">Completed</th><td class="num">0.67</td>' in text
    for later in ("structured events", "Fails most often", "75 %", "threshold"):
        assert later not in text


def test_hostile_reasons_of_gates_stay_text(signed_in, version):
    run = make_run(version)
    make_trial(run, outcome="fail", scores=[score("gates", HOSTILE, 0.0, False, message=HOSTILE)])
    text = page(signed_in(), close(run))
    shown = "&lt;/code&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩"
    assert f"Fails most often: <code>{shown}</code>: {shown}" in text
    assert "<script>alert" not in text


def test_a_layer_that_had_nothing_to_do_says_so_once(signed_in, version):
    run = make_run(version)
    make_trial(run, scores=[], detail={})
    text = page(signed_in(), close(run)).partition('id="layers"')[2].partition('<section id="trials"')[0]
    for said in ("No gate decided in this run.", "Nothing was judged.", "no command of the tool was seen."):
        assert text.count(said) == 1
    for empty in ("0 judgings", "0 of 0", "0 trials", "in 0 of"):
        assert empty not in re.sub(r"<[^>]*>", "", text)


def test_judgings_without_any_score_are_not_left_without_a_word(signed_in, version):
    run = make_run(version)
    for _ in range(2):
        make_judging(make_trial(run, scores=[]), content={"negatives": [], "positives": [], "error": "No."})
    assert "No score came of them." in page(signed_in(), close(run))


def test_commands_that_only_texts_tell_are_not_said_to_be_of_events(signed_in, version):
    run = make_run(version)
    scores = [score("interaction", "total_commands", 0.0)]
    make_trial(run, scores=scores, detail={"interaction": {"available": False, "source": "transcript"}})
    text = page(signed_in(), close(run))
    assert "From the text of 1 of 1 trial.<" in text
    assert "structured events" not in text


def test_an_open_run_says_how_much_its_numbers_are_of(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, outcome="", scores=[])
    client = signed_in()
    text = page(client, run)
    assert "No trial is done yet." in text
    assert "Nothing was judged yet." in text
    make_trial(run, scores=[])
    assert "1 of 2 trials, so numbers still move." in page(client, run)


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
    text = page(signed_in(), run)
    (row,) = re.findall(r'<tr><th scope="row">First-try success</th>.*?</tr>', text)
    assert '<td class="num">0.75</td>' in row
    # What is compared is whole runs.
    assert row.count("<td") == 1
    judge = text.partition("3 Judge")[2]
    assert "<strong>0.40</strong>" in judge
    assert 'Correctness</th><td class="num">0.25</td>' in judge
    assert "3 of 4 trials, so numbers still move." in text
    assert "Nothing was judged" not in judge


def test_an_open_run_without_commands_says_so(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, outcome="")
    assert "No command of the tool was seen yet." in page(signed_in(), run)


def test_a_statement_and_its_trials_stand_on_one_line(signed_in, version):
    text = page(signed_in(), judged_run(version))
    link = r'<span class="nowrap"><a href="[^"]+#judge">3 trials</a></span>'
    assert re.search(rf'<li class="is-issue"><p>[^<]+ {link}</p></li>', text)
