"""The recipes of docs/providers.md for other agents, word by word, with their stand-ins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.calls import calls
from evaluators.transcripts import parse
from runs.providers import make_provider
from runs.targets.definitions import read_targets, resolve
from tests.runs.containments import containment
from tests.runs.providers.agents import FILES, invocation

ROOT = Path(__file__).parents[3]
RECIPES = (ROOT / "docs/providers.md").read_text().partition("## Other agents")[2]
TARGETS = {
    target.name: target for target in read_targets(RECIPES.split("```")[1].removeprefix("yaml").encode(), "t")
}


@pytest.mark.parametrize("name", ["gemini", "acp"])
def test_a_recipe_reports_commands_and_answer(tmp_path, name):
    base = containment()
    path = f"{ROOT / 'docs/recipes'}:{FILES / 'agents'}:{base.path}"
    target = resolve(TARGETS[name], {"GEMINI_API_KEY": "key"})
    recording = make_provider(target, replace(base, path=path)).invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw, recording.events)
    found = [(call.event.command, call.exit_code) for call in calls(transcript.events)]
    assert found == [("taskmgr creat", 1), ("taskmgr list", 0)]
    assert (recording.answer, recording.exit_code) == ("All done.", 0)
