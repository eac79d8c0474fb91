"""What is kept of a closed run for its page: the same as is read from its trials."""

from __future__ import annotations

import msgspec
import pytest

from runs.models import RunDigest, Trial
from runs.summaries import kept_digests
from runs.summaries.digests import LONGEST, digest_of
from runs.summaries.kept_digests import ended_trials, kept_digest, outcomes_by_key, subcommand_totals
from runs.summaries.rollups import write_rollups
from runs.summaries.subcommands import SubcommandTotal
from runs.warehouse.run_trials import trials_of
from tests.builders import close, make_run, make_trial, used
from tests.trial_parts import make_judging

pytestmark = pytest.mark.django_db
FAILED = [
    {"layer": "gates", "name": "file_exists", "passed": False, "message": "No file 'out.txt'."},
    {"layer": "gates", "name": "file_contains", "passed": True, "value": 1.0},
    {"layer": "judge", "name": "judge", "value": 0.4, "passed": False},
]
DIAGNOSIS = {"diagnosis": [{"pattern": "guessed_flags", "sentence": "It guessed.", "evidence": ["--all"]}]}


def run_of_three(version, **fields):
    run = make_run(version, **fields)
    make_judging(make_trial(run, "create", scores=FAILED, outcome="fail", detail=DIAGNOSIS))
    make_trial(run, "export", outcome="error", error="The agent could not start. " * 40)
    make_trial(run, "export", outcome="", state="cancelled")
    return run


def test_what_is_kept_is_what_is_read_while_the_run_is_open(version):
    run = run_of_three(version)
    read = digest_of(run.pk)
    close(run)
    assert kept_digest(bytes(RunDigest.objects.get(run=run).content)) == read


def test_it_says_what_the_trials_came_to(version):
    digest = digest_of(run_of_three(version).pk)
    failed, errored, cancelled = digest.trials
    assert (failed.mark, failed.gates_passed, failed.gates_total, failed.judge) == ("fail", 1, 2, 0.4)
    assert failed.lost[0] == "No file 'out.txt'."
    assert (errored.mark, len(errored.lost[0])) == ("error", LONGEST)
    assert (cancelled.mark, cancelled.state, cancelled.lost) == ("none", "cancelled", [])
    assert [(gate.name, gate.passed) for gate in digest.gates] == [("file_exists", 0), ("file_contains", 1)]
    assert digest.judged == 1
    (finding,) = digest.diagnosis
    assert (finding.title, finding.evidence, finding.trials) == ("Guessed flags", ("--all",), (failed.pk,))


def test_the_page_of_a_closed_run_reads_no_trial(version, django_assert_num_queries):
    before = close(run_of_three(version))
    run = close(run_of_three(version, baseline=before))
    with django_assert_num_queries(1) as asked:
        read = trials_of(run)
    assert "runs_trial" not in asked[0]["sql"]
    assert read.before == {"create": ["fail"], "export": ["error"]}
    assert len(read.trials) == 3


@pytest.mark.parametrize("lacks", ["run", "baseline"])
def test_a_run_that_was_closed_without_a_digest_is_read_from_its_trials(version, lacks):
    before = close(run_of_three(version))
    run = close(run_of_three(version, baseline=before))
    whole = trials_of(run)
    RunDigest.objects.filter(run=run if lacks == "run" else before).delete()
    read = trials_of(run)
    assert (read.digest, read.before) == (whole.digest, whole.before)
    assert read.outcomes == whole.outcomes == {"create": ["fail"], "export": ["error"]}


def test_an_open_run_is_read_from_its_trials_also_where_something_was_kept(version):
    run = close(run_of_three(version))
    Trial.objects.filter(run=run, outcome="fail").update(outcome="pass")
    run.state = "running"
    assert trials_of(run).trials[0].outcome == "pass"


def test_a_digest_is_decoded_once_while_its_bytes_are_the_same(version):
    run = make_run(version)
    make_trial(run, "create")
    close(run)
    content = bytes(RunDigest.objects.get(run=run).content)
    for read in (kept_digest, ended_trials, outcomes_by_key):
        assert read(content) is read(bytes(bytearray(content)))
        # Longer than what is remembered: read alike, and anew.
        padded = content + b" " * kept_digests.LONGEST
        assert read(padded) == read(content)
        assert read(padded) is not read(padded)


def test_what_is_written_anew_is_read_anew(version):
    run = make_run(version)
    trial = make_trial(run, "create")
    close(run)
    assert [each.outcome for each in trials_of(run).trials] == ["pass"]
    Trial.objects.filter(pk=trial.pk).update(outcome="fail")
    write_rollups(run)
    assert [each.outcome for each in trials_of(run).trials] == ["fail"]


def test_it_tells_subcommands_of_trials_that_are_no_errors(version):
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
    assert digest_of(run.pk).subcommands == [
        SubcommandTotal("export", 6, 4, 2, 2, 2, 1.0, "no flag", 4),
        SubcommandTotal("list"),
    ]


def test_a_digest_from_before_there_were_subcommands_in_it_is_read(version):
    run = close(run_of_three(version))
    content = msgspec.json.decode(bytes(RunDigest.objects.get(run=run).content))
    del content["subcommands"]
    older = msgspec.json.encode(content)
    assert kept_digest(older).subcommands is None
    assert subcommand_totals(older) is None
    assert kept_digest(older).trials == trials_of(run).trials
