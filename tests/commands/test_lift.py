"""`run_scenarios --lift`: the skill against no skill, until decided, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.compare.guidance.lift_findings import lift_json, lifts_of_launch
from runs.models import JudgingRecord, Launch, Run
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
EXAMPLES = Path(__file__).parents[2] / "scenarios/examples"
LIFT = ("run_scenarios", str(EXAMPLES / "stock-keeping"), "--targets", str(EXAMPLES / "targets.yaml"),
        "--target", "scripted-agent", "--lift", "--now", "--quiet")  # fmt: skip


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
    assert [each["decision"] for each in skill.looks][-1] == "decided"
    (lift,) = map(lift_json, lifts_of_launch(Launch.objects.get().pk))
    assert (lift["verdict"], lift["sentence"]) == ("improved", sentence)
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


def test_a_dry_run_shows_both_arms_and_stores_nothing():
    ended = call(*LIFT[:-2], "--dry-run")
    assert "no skill: 9 trials" in ended.out
    assert not Run.objects.exists()
