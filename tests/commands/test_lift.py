"""`run_scenarios --lift`: the skill against no skill, until decided, in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runs.compare.guidance.lift_findings import lift_json, lifts_of_launch
from runs.models import JudgingRecord, Launch, Run
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
EXAMPLES = Path(__file__).parents[2] / "scenarios/examples"
LIFT = ("run_scenarios", str(EXAMPLES / "stock-keeping"), "--targets", str(EXAMPLES / "targets.yaml"),
        "--target", "scripted-agent", "--lift", "--now", "--quiet")  # fmt: skip


def test_one_trial_of_each_case_shows_both_arms_and_their_statements():
    ended = call(*LIFT, "--trials", "1", "--max-trials", "1")
    lines = ended.out.splitlines()
    (sentence,) = [line for line in lines if line.startswith("On scripted-agent")]
    assert "pass rate 33 % without it, 100 % with it" in sentence
    table = [" ".join(line.split()) for line in lines[lines.index(sentence) :]]
    assert "Only with the skill order-low The agent used `--below 5`. 0% of 1 100% of 1" in table
    assert "Always holds count-shelf No command failed. 100% of 1 100% of 1" in table
    without, skill = Run.objects.order_by("pk")
    assert (without.guidance.name, without.guidance.files) == ("no skill", [])
    assert (skill.baseline, skill.is_experiment) == (without, True)
    prompts = JudgingRecord.objects.values_list("content__user_prompt", flat=True)
    assert len(prompts) == 6
    assert not [each for each in prompts if "skill" in each.lower()]


@pytest.mark.slow
def test_one_sentence_says_what_the_skill_adds_and_a_table_by_which_statements():
    ended = call(*LIFT)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    (sentence,) = [line for line in lines if line.startswith("On scripted-agent")]
    assert "the skill adds 67 points of pass rate (95 % interval +50 to +83)" in sentence
    assert "pass rate 33 % without it, 100 % with it; share of statements +" in sentence
    assert sentence.endswith("It helps on count-shelf, order-low.")
    table = [" ".join(line.split()) for line in lines[lines.index(sentence) :]]
    assert "Only with the skill order-low The agent used `--below 5`. 0% of 6 100% of 6" in table
    assert "Always holds count-shelf No command failed. 100% of 6 100% of 6" in table
    without, skill = Run.objects.order_by("pk")
    assert (without.guidance.name, without.guidance.files) == ("no skill", [])
    assert (without.is_experiment, skill.is_experiment) == (True, True)
    assert (without.verdict, skill.verdict, skill.baseline) == ("", "improved", without)
    assert [each["decision"] for each in skill.looks][-1] == "decided"
    (lift,) = map(lift_json, lifts_of_launch(Launch.objects.get().pk))
    assert (lift["verdict"], lift["sentence"]) == ("improved", sentence)
    assert (lift["previous"], lift["benchmark"]) == (None, None)
    prompts = JudgingRecord.objects.values_list("content__user_prompt", flat=True)
    assert len(prompts) == 30
    assert not [each for each in prompts if "skill" in each.lower()]
    exported = next(each for each in prompts if "--below 5 order.csv [exit 0]" in each)
    assert "order.csv\nname,quantity" in exported
    again = call("judge_again", str(skill.pk))
    assert again.code == 0, again.err
    asked = JudgingRecord.objects.filter(trial__run=skill).order_by("-pk")[:15]
    assert not [each for each in asked if "skill" in each.content["user_prompt"].lower()]
    assert JudgingRecord.objects.count() == 45


def test_a_suite_without_a_skill_and_two_versions_are_refused():
    ended = call("run_scenarios", str(EXAMPLES / "stock"), *LIFT[2:])
    assert ended.code == 2
    assert "stock has no skill, so there is no lift." in ended.err
    assert not Run.objects.exists()


def older_skill(tmp_path: Path) -> Path:
    """Return a folder with an older skill, which lacks the export, and no evals."""
    folder = tmp_path / "older"
    folder.mkdir()
    text = (EXAMPLES / "stock-keeping/SKILL.md").read_text()
    kept = [line for line in text.splitlines(keepends=True) if "export items" not in line]
    (folder / "SKILL.md").write_text("".join(kept))
    return folder


def benchmark(**means: float) -> str:
    """Return a benchmark.json as skill-creator writes it."""
    runs = [
        {"eval_id": "order-low", "configuration": arm, "run_number": 1, "result": {"pass_rate": mean}}
        for arm, mean in means.items()
    ]
    summary = {arm: {"pass_rate": {"mean": mean, "stddev": 0.0}} for arm, mean in means.items()}
    return json.dumps({"metadata": {"skill_name": "stock-keeping"}, "runs": runs, "run_summary": summary})


@pytest.mark.slow
def test_a_previous_version_runs_beside_and_is_tested_once_at_the_end(tmp_path):
    folder = tmp_path / "stock-keeping"
    shutil.copytree(EXAMPLES / "stock-keeping", folder)
    for number, share in ((9, 0.5), (10, 0.625)):
        iteration = tmp_path / f"stock-keeping-workspace/iteration-{number}"
        iteration.mkdir(parents=True)
        (iteration / "benchmark.json").write_text(benchmark(with_skill=0.875, old_skill=share))
    ended = call(LIFT[0], str(folder), *LIFT[2:], "--previous", str(older_skill(tmp_path)))
    # That the older skill fails a case is no failure of the skill.
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("On scripted-agent"))
    assert "the skill adds 67 points of pass rate" in lines[at]
    assert lines[at + 1].startswith("Against the previous version, skill 2: improved, pass rate +33 points (")
    assert "67 % with that version, 100 % with this one; share of statements +" in lines[at + 1]
    assert lines[at + 1].endswith(". The change helps on order-low.")
    assert lines[at + 2] == (
        "Mean share of statements by skill-creator's benchmark.json: 88 % with the skill (here 100 %), 62 % with its"
        " previous version (here 67 %)."
    )
    without, skill, previous = Run.objects.order_by("pk")
    assert [run.trial_set.filter(is_retest=False).count() for run in (without, skill, previous)] == [15] * 3
    assert (previous.is_experiment, previous.looks, previous.reference) == (True, [], without)
    assert {each["against"] for each in skill.looks} == {without.pk}
    (lift,) = map(lift_json, lifts_of_launch(Launch.objects.get().pk))
    assert lift["previous"]["verdict"] == "improved"
    assert [(each["configuration"], each["said"]) for each in lift["benchmark"]["means"]] == [
        *(("with_skill", 0.875), ("old_skill", 0.625))
    ]
    assert (lift["previous"]["guidance"], lift["previous"]["runs"]) == (previous.guidance_id, [previous.pk])
    prompts = JudgingRecord.objects.values_list("content__user_prompt", flat=True)
    assert len(prompts) == 45
    assert not [each for each in prompts if "skill" in each.lower()]


def test_the_previous_version_is_the_last_stored_one_with_another_skill(tmp_path):
    folder = tmp_path / "stock-keeping"
    shutil.copytree(EXAMPLES / "stock-keeping", folder)
    shutil.copy(older_skill(tmp_path) / "SKILL.md", folder / "SKILL.md")
    assert call("import_scenarios", str(folder)).code == 0
    planned = call(*LIFT[:-2], "--dry-run")
    assert "no skill: 9 trials" in planned.out
    assert "skill 2: 9 trials" in planned.out
    assert "skill 1: 9 trials" in planned.out
    alone = call(*LIFT[:-2], "--previous", "none", "--dry-run")
    assert "skill 1: 9 trials" not in alone.out
    # Uploading it again makes the newer version the previous one.
    older = call(LIFT[0], str(folder), *LIFT[2:-2], "--guidance", "1", "--dry-run")
    assert "skill 2" not in older.out
    assert call("import_scenarios", str(EXAMPLES / "stock-keeping")).code == 0
    again = call(LIFT[0], str(folder), *LIFT[2:-2], "--dry-run")
    assert [name for name in ("skill 1", "skill 2") if f"{name}: 9 trials" in again.out] == [
        "skill 1",
        "skill 2",
    ]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("previous", "sentence"),
    [
        ("{tmp}", "--previous {tmp}: There is no skill. Name a folder with SKILL.md, a version of"),
        ("{tmp}/none.md", "'{tmp}/none.md' isn't a guidance version of stock-keeping. It has: 1."),
        ("7", "'7' isn't a guidance version of stock-keeping. It has: 1."),
        ("1", "The previous version is the one that is measured. Choose another one, or none."),
    ],
)
def test_a_wrong_previous_version_is_refused_in_a_sentence(tmp_path, previous, sentence):
    (tmp_path / "README.md").write_text("No skill.")
    ended = call(*LIFT, "--previous", previous.format(tmp=tmp_path))
    assert ended.code == 2
    assert sentence.format(tmp=tmp_path) in ended.err
    assert not Run.objects.exists()


def test_a_previous_version_without_a_lift_is_refused():
    ended = call(*(each for each in LIFT if each != "--lift"), "--previous", "none")
    assert (ended.code, "is an arm of a lift. Add --lift" in ended.err) == (2, True)
