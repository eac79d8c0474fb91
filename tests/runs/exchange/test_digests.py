"""What a run's page reads from its trials."""

from __future__ import annotations

import gc
from types import FrameType

import pytest

from evalhub.lib.limits import LONGEST_ERROR
from runs.results.digests import digest_of, digests_of
from runs.results.layer_totals import JudgeTotals, LostGate
from runs.results.subcommand_totals import SubcommandTotal
from tests.builders import close, make_run, make_suite, make_trial, make_version, score, used
from tests.trial_parts import make_judging

pytestmark = pytest.mark.django_db
FAILED = [
    {"layer": "gates", "name": "file_exists", "passed": False, "message": "No file 'out.txt'."},
    {"layer": "gates", "name": "file_contains", "passed": True, "value": 1.0},
    {"layer": "judge", "name": "judge", "value": 0.4, "passed": False},
]
FAILING = used({"name": "add", "calls": 4, "errors": 3, "first_tries": 1})


def run_of_three(version, **fields):
    run = make_run(version, **fields)
    make_judging(make_trial(run, "create", scores=FAILED, outcome="fail", detail=FAILING))
    make_trial(run, "export", outcome="error", error="The agent could not start. " * 40)
    make_trial(run, "export", outcome="", state="cancelled")
    return run


def test_a_list_reads_why_trials_failed(version):
    run = close(run_of_three(version))
    assert [each.lost for each in digests_of([run.pk], why_of=[run.pk])[run.pk].trials] == [
        each.lost for each in digest_of(run).trials
    ]


def test_it_has_the_trials_outcomes(version):
    digest = digest_of(run_of_three(version))
    failed, errored, cancelled = digest.trials
    assert (failed.mark, failed.gates_passed, failed.gates_total, failed.judge) == ("fail", 1, 2, 0.4)
    assert failed.lost[0] == "No file 'out.txt'."
    assert (errored.mark, len(errored.lost[0])) == ("error", LONGEST_ERROR)
    assert (cancelled.mark, cancelled.state, cancelled.lost) == ("none", "cancelled", ())
    assert [(gate.name, gate.passed) for gate in digest.gates] == [("file_exists", 0), ("file_contains", 1)]
    assert digest.judged == 1
    (finding,) = digest.diagnosis
    assert (finding.title, finding.trials, finding.scenarios) == (
        "Errors without help",
        (failed.pk,),
        ("create",),
    )


def test_a_trial_keeps_how_its_commands_went(version):
    run = make_run(version)
    make_trial(run, "create", scores=[score("interaction", "total_commands", 7.0)])
    make_trial(run, "export", detail=used({"name": "list", "calls": 8, "errors": 2, "first_tries": 2}))
    figures = [(trial.first_try, trial.commands) for trial in digest_of(run).trials]
    assert figures == [(None, 7.0), (0.5, 4.0)]


def test_it_totals_subcommands_without_errors(version):
    run = make_run(version)
    export = {
        "name": "export",
        "calls": 3,
        "errors": 2,
        "first_tries": 1,
        "helps": 1,
        "retries_after_failure": 1,
    }
    attempts = {"tries": {"1": 2, "4": 1}, "errors": {"no flag": 2}}
    for outcome in ("pass", "fail", "error"):
        make_trial(run, "create", outcome=outcome, detail=used(export, {"name": "list"}, export=attempts))
    assert digest_of(run).subcommands == [
        SubcommandTotal("export", 6, 4, 2, 2, 2, tries=1.0, message="no flag", messages=4),
        SubcommandTotal("list"),
    ]


def lost(reason):
    return score("gates", "file_exists", 0.0, False, message=reason)


def judged(value, passed, **weights):
    criteria = [score("judge", f"criterion.{name}", value, weight=weight) for name, weight in weights.items()]
    return [score("judge", "judge", value, passed), *criteria]


def ended(run, *scores, source="events", completed=1.0, outcome="fail"):
    done = score("interaction", "completed", completed)
    make_trial(run, outcome=outcome, scores=[done, *scores], detail={"interaction": {"source": source}})


def test_it_totals_layers_without_errors(version):
    run = make_run(version)
    ended(run, lost("No a."), *judged(0.4, False, right=3, quick=1))
    ended(run, lost("No b."), lost("No b."), *judged(0.8, True, right=1.5, quick=0.5), completed=0.0)
    ended(run, lost("No b."), source="transcript", completed=None)
    ended(run, lost("No c."), source="none")
    ended(run, lost("No c."), *judged(0.1, False), outcome="error")
    layers = digest_of(run).layers
    assert (layers.trials, layers.completed, layers.known) == (4, 2, 3)
    assert (layers.structured, layers.text) == (2, 1)
    second, third = sorted(run.trial_set.values_list("pk", flat=True))[1:3]
    assert layers.lost == LostGate("file_exists", "No b.", (second, third))
    assert layers.judge == JudgeTotals(1, 2, (), {"criterion.right": 0.75, "criterion.quick": 0.25})


def test_criteria_with_differing_weights_have_no_share(version):
    run = make_run(version)
    ended(run, *judged(0.4, False, right=1, quick=1, short=2))
    ended(run, *judged(0.4, False, right=2, quick=0, short=2))
    assert digest_of(run).layers.judge.shares == {"criterion.short": 0.5}


@pytest.mark.parametrize("asked", [[0.7], [0.9, 0.7], []], ids=["one", "two", "none"])
def test_it_has_the_judges_thresholds(project, asked):
    suite = make_suite(project, ("a", "b")).suite
    contents = dict(zip("ab", [*asked, *asked[:1]] if len(asked) == 1 else asked, strict=False))
    version = make_version(
        suite,
        **{
            key: {"criteria": {"judge": {"pass_threshold": contents[key]}} if key in contents else {}}
            for key in "ab"
        },
    )
    run = make_run(version)
    for key in "ab":
        make_trial(run, key)
    judge = digest_of(run).layers.judge
    assert judge.thresholds == tuple(sorted(asked))
    assert judge.threshold == (asked[0] if len(asked) == 1 else None)


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_layers_without_data_are_empty(version, outcome):
    run = make_run(version)
    make_trial(run, outcome=outcome, scores=[], detail={})
    layers = digest_of(run).layers
    assert (layers.known, layers.structured, layers.text) == (0, 0, 0)
    assert (layers.lost, layers.judge) == (None, JudgeTotals())


@pytest.mark.parametrize(
    ("gates", "judge", "disagrees"),
    [
        ([True, True], True, False),
        ([True, False], False, False),
        ([True, True], False, True),
        ([True, False], True, True),
        ([True], None, False),
        ([], True, False),
    ],
)
def test_a_trial_knows_whether_gates_and_judge_disagree(version, gates, judge, disagrees):
    run = make_run(version)
    scores = [score("gates", "script", None, passed) for passed in gates]
    make_trial(run, scores=[*scores, score("judge", "judge", 0.5, judge)])
    (read,) = digest_of(run).trials
    assert read.disagrees is disagrees


def test_nothing_of_a_digest_waits_for_the_garbage_collector(version):
    run = run_of_three(version)
    gc.disable()
    try:
        digest_of(run)
        # isinstance() would ask lazy objects of other tests for their class, which evaluates them.
        frames = [each for each in gc.get_objects() if type(each) is FrameType]
    finally:
        gc.enable()
    assert [frame for frame in frames if frame.f_code is digest_of.__code__] == []
