"""Runs whose recipe took every command that was carried out for a success are found and marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from runs.compare.comparison import incomparable
from runs.compare.measure_changes import compare_run_measures
from runs.engine.stored_trials import recounting
from runs.engine.stored_trials.old_recipes import mark_old_recipes
from runs.models import Artifact, Run, RunMeasure, TranscriptRecord, Trial
from runs.models.trial import json_of, transcript_row
from runs.results.counting import ends_of_run
from runs.results.files.artifacts import keep_content
from scenarios.models import ScenarioVersion, SuiteVersion
from tests.builders import close, make_project, make_run, make_suite, make_target, make_trial, score
from tests.commands.calling import call

pytestmark = pytest.mark.django_db
RECIPES = Path(__file__).parents[2] / "files/recipes"
OLD_TEMPLATE = "gemini-events {EVENTS_FILE} {OUTPUT_FILE} gemini --prompt {PROMPT}"


def events(*ends: dict[str, Any]) -> Transcript:
    """A session of `tool add`, once for each end."""
    found: list[Event] = []
    for n, end in enumerate(ends):
        found.append(Event("tool_call", str(n), "shell", "tool add"))
        found.append(Event("tool_result", str(n), output="error: no", **end))
    return Transcript(events=tuple(found), source="events")


SUCCESS, FAILED, STATED = {"success": True}, {"success": False}, {"exit_code": 2}


@pytest.fixture
def version() -> SuiteVersion:
    found = make_suite(make_project(), ("create",))
    for each in ScenarioVersion.objects.all():
        each.content["criteria"] |= {"tool": {"binary": "tool"}, "gates": [{"type": "no_transcript_errors"}]}
        each.save()
    return found


def run_of(
    version: SuiteVersion, *transcripts: Transcript, template: str = OLD_TEMPLATE, printed: bytes = b""
) -> Run:
    """A closed run of a `cli` target with a trial for each transcript."""
    name = f"agent-{Run.objects.count()}"
    target = make_target(
        version.suite.project, name=name, provider="cli", definition={"command_template": template}
    )
    run = make_run(version, target=target)
    for each in transcripts:
        found = analyse(each, Tool(binary="tool"), completed=True)
        rows = [
            score("interaction", "error_rate", found.error_rate or 0.0),
            score("interaction", "completed", 1.0),
            score("gates", "no_transcript_errors", 1.0, True),
        ]
        trial = make_trial(run, scores=rows, detail={"interaction": json_of(found) | {"commands": []}})
        row = transcript_row(trial.pk, each)
        TranscriptRecord.objects.create(trial=trial, **{k: v for k, v in row.items() if k != "trial"})
        if printed:
            kept = keep_content("transcript", printed)
            Artifact.objects.create(trial=trial, name=kept.name, sha256=kept.sha256, size=kept.size)
    return close(run)


def test_a_run_of_an_old_recipe_is_marked_and_not_compared(version: SuiteVersion) -> None:
    old, older = run_of(version, events(SUCCESS, FAILED), events(FAILED)), run_of(version, events(SUCCESS))
    new = run_of(version, events(STATED))
    assert "error_rate" in _measures(old)
    document = call("mark_old_recipes", "--json").document
    assert (document["runs"], document["trials"]) == ([old.pk, older.pk], 3)
    old, older = Run.objects.get(pk=old.pk), Run.objects.get(pk=older.pk)
    trial = Trial.objects.filter(run=old).first()
    assert trial is not None
    found = trial.detail["interaction"]
    assert (found["available"], found["source"], found["total_commands"]) == (False, "none", 0)
    assert "old recipe" in found["problem"] and found["misread"]["error_count"] == 1
    assert _measures(old) == {"completed"} and ends_of_run(old.counting) == "unknown"
    for before, after in ((old, new), (old, older)):
        compared = compare_run_measures(before, after)
        names = {each.rule.name for each in (*compared.headline, *compared.others) if each.scenarios}
        assert not {name for name in names if name.startswith("interaction/")} - {"interaction/completed"}
        assert compared.ends == ()
    # A gate read the commands.
    assert incomparable(old, new) == {"create": ("gate_counting",)}


def test_the_second_time_nothing_is_found(version: SuiteVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(version, events(SUCCESS))
    assert f"({run.pk})" in call("mark_old_recipes").out
    assert call("mark_old_recipes").out.strip() == "No run was made with an old recipe."
    # Rules of a later release do not bring the figures back.
    Run.objects.update(recounted=0)
    Trial.objects.update(detail={**Trial.objects.get().detail, "interaction": {**_interaction(), "rules": 1}})
    assert recounting.recount().kept == 1 and "misread" in _interaction()


@pytest.mark.parametrize(
    ("template", "printed", "is_marked"),
    [
        ("my-acp {EVENTS_FILE}", RECIPES.joinpath("qwen-acp.txt").read_bytes(), True),
        ("my-gemini {EVENTS_FILE}", RECIPES.joinpath("gemini-stream.txt").read_bytes(), True),
        ("my-agent {EVENTS_FILE}", b"I did it.", False),
    ],
)
def test_a_recipe_of_another_name_is_known_by_the_stream(
    version: SuiteVersion, template: str, printed: bytes, is_marked: bool
) -> None:
    run = run_of(version, events(SUCCESS), template=template, printed=printed)
    assert (mark_old_recipes().runs == [run.pk]) is is_marked


def test_events_of_the_new_recipes_are_left(version: SuiteVersion) -> None:
    run_of(version, events(STATED, {}, {"exit_code": 0}))
    assert mark_old_recipes().runs == []


def test_a_recorded_trial_keeps_its_record(version: SuiteVersion) -> None:
    run = run_of(version, events(SUCCESS))
    reported = {**_interaction()}
    Trial.objects.update(
        detail={"interaction": {**reported, "source": "recorded", "error_rate": 0.5, "reported": reported}}
    )
    assert mark_old_recipes().runs == [run.pk]
    found = _interaction()
    assert (found["source"], found["error_rate"], "reported" in found) == ("recorded", 0.5, False)
    assert ends_of_run(Run.objects.get(pk=run.pk).counting) == "recorded"


def _interaction() -> dict[str, Any]:
    found: dict[str, Any] = Trial.objects.get().detail["interaction"]
    return found


def _measures(run: Run) -> set[str]:
    rows = RunMeasure.objects.filter(run=run, scenario=None, measure__layer="interaction")
    return set(rows.values_list("measure__name", flat=True))
