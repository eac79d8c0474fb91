"""A skill whose cases have statements alone, where nothing names a judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from runs.engine import preparation
from runs.models import Run, Trial
from tests.builders import make_member
from tests.commands.calling import call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
SKILL = "---\nname: tally\ndescription: Count things with tally. Use when asked to count.\n---\nRun `tally add N`.\n"
CASES = [
    {"id": 1, "prompt": "Count three apples.", "assertions": ["The answer says 3."]},
    {"id": 2, "prompt": "Count two pears.", "assertions": ["The answer says 2."]},
]
TARGETS = """
targets:
  - {name: echo, provider: cli, command_template: "echo done {PROMPT}"}
  - {name: strict, provider: mock, response: '{"statements": [{"number": 1, "holds": true, "evidence": "done"}]}'}
"""


@pytest.fixture
def run(tmp_path: Path, settings):
    """Return a function that runs the skill on the target `echo`, where no worker has a judge either."""
    settings.DEFAULT_JUDGE = ""
    folder = tmp_path / "my-skill"
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "evals/evals.json").write_text(json.dumps({"skill_name": "tally", "evals": CASES}))
    targets = tmp_path / "targets.yaml"
    targets.write_text(TARGETS)
    words = ("run_scenarios", str(folder), "--targets", str(targets), "--target", "echo")
    return lambda *more: call(*words, *more)


@pytest.mark.parametrize("more", [("--now",), ("--lift", "--now"), ("--dry-run",), ("--lift", "--dry-run")])
def test_nothing_starts_and_one_sentence_says_what_to_do(run, more):
    ended = run(*more)
    assert ended.code == 2
    (sentence,) = [line for line in ended.err.splitlines() if "can't be judged" in line]
    assert "--judge-model" in sentence
    assert "--no-judge" in sentence
    assert not Run.objects.exists()


def test_without_a_judge_it_runs_and_is_unchecked(run):
    ended = run("--no-judge", "--now", "--fail-on-regression", "--json", "--quiet")
    document = json.loads(ended.out)
    ran = document["runs"][0]["run"]
    assert (ended.code, ran["verdict"], ran["verdict_reason"]) == (4, None, "unchecked")
    assert ran["no_verdict"].startswith(f"Run {ran['id']} has no verdict: nothing checked its trials")
    assert ran["no_verdict"] in ended.err
    assert [each["vacuous"] for each in document["runs"][0]["trials"]] == [True, True]


def test_an_unchecked_lift_compares_cost_and_time_but_no_outcomes(run):
    ended = run("--no-judge", "--lift", "--now", "--quiet")
    (sentence,) = [line for line in ended.out.splitlines() if line.startswith("On echo")]
    assert "nothing says what the skill adds" in sentence
    assert "time per trial" in sentence
    assert "pass rate" not in sentence


def test_a_run_that_no_worker_is_registered_for_is_queued_and_its_worker_refuses(run):
    ended = run()
    assert ended.code == 0
    assert "can't be judged" in ended.err
    (queued,) = Run.objects.all()
    assert not preparation.prepare_run(queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.outcome) == ("finished", "error")
    assert "can't be judged, because nothing names a judge" in queued.error
    assert not Trial.objects.exclude(started=None).exists()


def test_a_lift_whose_judge_was_away_says_to_judge_its_transcripts(run):
    ended = run("--lift", "--now", "--quiet", "--judge-model", "openai/none")
    arms = list(Run.objects.order_by("pk"))
    assert (
        [each.unjudged for each in arms] == [each.errors for each in arms] == [each.trials for each in arms]
    )
    for arm in arms:
        assert f"Judge them now: `judge_again {arm.pk} --judge-model M --adopt`" in ended.out
    assert "all trials hit the same error" in ended.out
    assert "retry" not in ended.out.lower()
    before, after = (each.guidance_id for each in arms)
    client = Client()
    client.force_login(make_member(arms[0].project))
    text = parse(client.get(f"/p/default/guidance/{before}/against/{after}/")).text
    assert "all trials hit the same error" in text
    assert "No runs to compare" not in text
    text = parse(client.get(f"/p/default/runs/{arms[1].pk}/")).text
    assert f"Judge {arms[1].errors} trials now…" in text
    assert "Retry errors" not in text
    again = call("judge_again", str(arms[1].pk), "--judge-model", "strict", "--adopt")
    assert again.code == 0, again.err
    arms[1].refresh_from_db()
    assert (arms[1].errors, arms[1].unjudged, arms[1].passed) == (0, 0, arms[1].trials)
