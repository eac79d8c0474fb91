"""Stored trials judged and graded again by commands, and adopted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.engine.stored_trials.adopting import adopt
from runs.models import JudgingRecord, Reassessment, Run, RunMeasure, Target, TargetVersion, Trial
from runs.results.comparability import adopted_parts, changed_parts
from runs.review.overruling import overrule
from tests.builders import make_member
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
SUITE = """name: good
description: Something simple.
target: {{binary: sh}}
task: {{prompt: echo done > out.txt}}
evaluation:
  gates:
    - {{type: {gate}, path: {path}}}
  judge:
    enabled: true
    pass_threshold: 0.5
    rubric:
      criteria:
        - {{id: task, weight: 1, description: Does the task.}}
"""


def _reply(score: float, *ids: str) -> str:
    answer = {"scores": dict.fromkeys(ids, score), "reasons": dict.fromkeys(ids, "Saw it.")}
    answer |= {"weighted_score": score, "confidence": 0.9}
    return json.dumps({**answer, "issues": ["Slow."], "highlights": []})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a closed run of one trial, judged 0.9 by a judge beside a strict one."""
    (tmp_path / "good.yaml").write_text(SUITE.format(gate="file_exists", path="out.txt"))
    ids = ("task", "documentation_sufficiency", "workflow_clarity")
    targets = [
        {"name": "shell", "provider": "cli", "command_template": "sh -c {PROMPT}", "judge_target": "kind"},
        {"name": "kind", "provider": "mock", "response": _reply(0.9, *ids), "cost_usd": 0.01},
        {"name": "strict", "provider": "mock", "response": _reply(0.2, *ids), "cost_usd": 0.01},
    ]
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
    words = ("--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--now")
    done = call("run_scenarios", str(tmp_path / "good.yaml"), *words)
    assert done.code == 0, done.err + done.out
    return Run.objects.get()


def _mean(run: Run) -> float:
    return RunMeasure.objects.get(run=run, scenario=None, measure__layer="judge", measure__name="judge").mean


def test_judging_again_adds_and_adopting_counts(run: Run) -> None:
    done = call("judge_again", str(run.pk), "--judge-model", "strict", "--max-usd", "1", "--json")
    (pair,) = done.document["trials"]
    assert (pair["before"], pair["after"], pair["score_after"]) == ("pass", "fail", 0.2)
    plan = {"trials": 1, "calls": 1, "cost_usd": pytest.approx(0.01), "not_graded": []}
    assert done.document["plan"] == plan
    assert list(JudgingRecord.objects.order_by("pk").values_list("score", "counts")) == [
        (0.9, True),
        (0.2, False),
    ]
    assert Trial.objects.get().outcome == "pass" and _mean(run) == 0.9
    adopt(Reassessment.objects.get(), by=None)
    run.refresh_from_db()
    assert (Trial.objects.get().outcome, run.outcome, _mean(run)) == ("fail", "fail", 0.2)
    assert list(JudgingRecord.objects.order_by("pk").values_list("score", "counts")) == [
        (0.9, False),
        (0.2, True),
    ]


def test_an_overruled_score_stays_overruled(run: Run) -> None:
    trial = Trial.objects.get()
    position = next(n for n, each in enumerate(trial.scores) if each["name"] == "judge")
    overrule(trial, position, passed=False, reason="No.", by=make_member(run.project, "runner", "ada"))
    call("judge_again", str(run.pk), "--adopt")
    trial.refresh_from_db()
    assert trial.outcome == "fail" and trial.overrules.get().original["value"] == 0.9


@pytest.mark.spec("llm-tool-test", "Rubrics about the documentation")
def test_a_shipped_rubric_can_be_chosen(run: Run) -> None:
    done = call("judge_again", str(run.pk), "--rubric", "guidance", "--adopt")
    assert "Adopted the scores of 1 trial." in done.out, done.err
    names = {each["name"] for each in Trial.objects.get().scores}
    assert {"criterion.documentation_sufficiency", "criterion.workflow_clarity"} <= names
    assert len(set(JudgingRecord.objects.values_list("rubric", flat=True))) == 2


def test_a_spent_budget_stops_with_a_sentence(run: Run) -> None:
    run.trial_set.update(index=1)
    copy = Trial.objects.get()
    record = copy.transcript
    copy.pk, copy.index = None, 0
    copy.save()
    record.pk = copy.pk
    record.save(force_insert=True)
    done = call("judge_again", str(run.pk), "--max-usd", "0.005")
    assert done.code == 1
    assert "The judges' budget of $0.0050 is spent. The other trials were not judged." in done.out


def test_a_judge_without_a_cost_keeps_no_budget(run: Run) -> None:
    for each in (*Target.objects.filter(name="kind"), *TargetVersion.objects.filter(target__name="kind")):
        each.definition.pop("cost_usd", None)
        each.save()
    done = call("judge_again", str(run.pk), "--max-usd", "1")
    assert done.code == 1 and "The judge reports no cost, so no budget can be kept." in done.out
    assert Reassessment.objects.get().cost_usd == 0.0


def test_grading_again_uses_the_newest_gates(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(SUITE.format(gate="file_exists", path="other.txt"))
    call("import_scenarios", str(tmp_path / "good.yaml"))
    done = call("grade_again", str(run.pk), "--adopt")
    assert "pass → fail" in done.out, done.out + done.err
    trial = Trial.objects.get()
    assert trial.outcome == "fail"
    assert any(each["layer"] == "judge" for each in trial.scores), "the judge's scores stay"


def test_without_a_workspace_grading_says_so(run: Run) -> None:
    Trial.objects.get().artifacts.all().delete()
    plan = call("grade_again", str(run.pk), "--plan")
    sentence = "good, 1 trial not graded: The workspace is not stored. Needed by file_exists out.txt."
    assert sentence in plan.out
    done = call("grade_again", str(run.pk))
    assert "The workspace is not stored. 1 of 1 checks need it (file_exists out.txt)" in done.out
    assert "no scores to adopt" in call("grade_again", str(run.pk), "--adopt").err


def test_large_files_that_are_missing_are_named(run: Run) -> None:
    trial = Trial.objects.get()
    trial.detail["workspace"]["left_out"] = ["big.bin"]
    trial.save()
    done = call("grade_again", str(run.pk))
    assert "The stored workspace lacks large files, such as big.bin." in done.out


def test_post_scripts_run_again_before_the_gates(run: Run, tmp_path: Path) -> None:
    post = "scripts: {post: [{command: 'cp out.txt posted.txt; exit 3'}]}\n"
    (tmp_path / "good.yaml").write_text(SUITE.format(gate="file_exists", path="posted.txt") + post)
    assert call("import_scenarios", str(tmp_path / "good.yaml")).code == 0
    done = call("grade_again", str(run.pk), "--adopt")
    assert Trial.objects.get().outcome == "pass", done.out
    assert "The post script 'cp out.txt posted.txt; exit 3' failed" in done.out


def test_programs_of_the_workspace_can_still_run(run: Run, tmp_path: Path) -> None:
    prompt = "'printf \"#!/bin/sh\\n\" > tool; chmod +x tool'"
    suite = SUITE.format(gate="command_succeeds", path="x").replace("path: x", "command: ./tool")
    (tmp_path / "runs.yaml").write_text(
        suite.replace("name: good", "name: runs").replace("echo done > out.txt", prompt)
    )
    words = ("--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--now")
    call("run_scenarios", str(tmp_path / "runs.yaml"), *words)
    newest = Run.objects.order_by("pk").last()
    assert newest is not None and newest.trial_set.get().outcome == "pass"
    done = call("grade_again", str(newest.pk))
    assert "0 of 1 outcome differ." in done.out, done.out


def test_adopted_gates_decide_what_is_comparable(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(SUITE.format(gate="file_exists", path="other.txt"))
    words = ("--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--now")
    call("run_scenarios", str(tmp_path / "good.yaml"), *words)
    newer = Run.objects.order_by("pk").last()
    assert newer is not None and newer.pk != run.pk
    assert changed_parts(run, newer) == {"good": ("gates",)}
    call("grade_again", str(run.pk), "--adopt")
    run.refresh_from_db()
    assert changed_parts(run, newer) == {}
    assert run.fingerprint["gates"].startswith("graded again")
    newer.refresh_from_db()
    assert newer.changes.filter(measure__name="pass", scenario=None).exists()


def test_partly_graded_scenarios_are_not_comparable(run: Run, tmp_path: Path) -> None:
    trial = Trial.objects.get()
    trial.pk, trial.index = None, 1
    trial.save()
    (tmp_path / "good.yaml").write_text(SUITE.format(gate="file_exists", path="other.txt"))
    call("import_scenarios", str(tmp_path / "good.yaml"))
    call("grade_again", str(run.pk), "--adopt")
    run.refresh_from_db()
    assert adopted_parts(run.fingerprint) == {"good": {"gates": f"partly, run {run.pk}"}}


def test_an_adopted_judge_is_the_runs_judge(run: Run) -> None:
    call("judge_again", str(run.pk), "--judge-model", "strict", "--rubric", "guidance", "--adopt")
    run.refresh_from_db()
    assert run.fingerprint["judge"] == "strict" and len(run.fingerprint["judge_sha256"]) == 64
    (parts,) = adopted_parts(run.fingerprint).values()
    assert parts["judge_model"].startswith("strict ") and len(parts["rubric"]) == 12


def test_bad_requests_are_sentences(run: Run) -> None:
    for option, value, sentence in (
        ("--rubric", "nothing", "Unknown rubric 'nothing'"),
        ("--max-usd", "-1", "more than 0 dollars"),
        ("--judge-model", "nowhere", "is neither a target of this project nor a model"),
    ):
        done = call("judge_again", str(run.pk), option, value)
        judged = list(JudgingRecord.objects.values_list("content", flat=True))
        assert sentence in done.err + done.out + json.dumps(judged), option


def test_an_unknown_run_is_a_sentence(db: None) -> None:
    assert "There is no run 99." in call("judge_again", "99").err


def test_an_uncalibrated_judge_only_informs(run: Run) -> None:
    run.project.only_calibrated_judges = True
    run.project.save()
    call("judge_again", str(run.pk), "--judge-model", "strict", "--adopt")
    trial = Trial.objects.get()
    judge = next(each for each in trial.scores if each["name"] == "judge")
    assert trial.outcome == "pass" and judge.get("passed") is None
    assert "not calibrated" in judge["message"]
