"""The example skill with and without, by every agent program: where it is offered and loaded, and where it isn't.

The model is scripted: it loads the skill where the program offers it, and tries alone where not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.engine import run_here
from runs.launch.lift import keep_arms, lift_arms
from runs.launch.request import Request, request_runs
from runs.models import Trial
from runs.models.run import Trigger
from runs.models.run_options import RunOptions, Selection
from runs.sandbox.worker_settings import containment
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle, read_path
from scenarios.imports import import_files
from scenarios.models import Guidance, SuiteVersion
from tests.builders import make_project
from tests.real_agents.real import (
    AGENTS,
    DIRECT,
    KEY,
    LOOPBACK_ONLY,
    MODELS,
    PROGRAMS,
    SESSION_AGENTS,
    give_price,
    playing,
    turns,
)
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

EXAMPLE = Path(__file__).parents[2] / "scenarios/examples/stock-keeping"
NAME, FILE = "stock-keeping", ".agents/skills/stock-keeping/SKILL.md"
OFFER = "Keeps the stock of the shop with the stock tool"
"""The skill's description, which every program tells the model."""
CONTENT = "export items below to the file"
"""A line of the skill, which the model gets when it loads it."""
PROGRAMS_OF = {**{kind: program for kind, (program, _) in AGENTS.items()}, **SESSION_AGENTS}
LOAD: dict[str, dict[str, Any]] = {
    "claude_code": {"tool": "Skill", "arguments": {"skill": NAME}},
    # It has no tool for skills: the model reads the file that the instructions name.
    "codex": {"command": f"cat {FILE}"},
    "opencode": {"tool": "skill", "arguments": {"name": NAME}},
    "gemini_cli": {"tool": "activate_skill", "arguments": {"name": NAME}},
    "qwen_code": {"tool": "skill", "arguments": {"skill": NAME}},
    "copilot_cli": {"tool": "skill", "arguments": {"skill": NAME}},
}
"""How a model loads a skill in each program."""
IN_WORKSPACE = (".claude/skills", ".opencode/skills", "plugins/shop/skills")
"""Where else a project or a plug-in may have the skill."""
AT_HOME = (
    *(".agents/skills", ".claude/skills", ".codex/skills", ".config/opencode/skills", ".copilot/skills"),
    *(".gemini/skills", ".qwen/skills", ".claude/plugins/shop/skills"),
)
"""Folders below the home of the person who runs evalhub, in which the skill may lie."""
pytestmark = [pytest.mark.xdist_group("trials"), pytest.mark.timeout(300)]


def example(*folders: str) -> Bundle:
    """Return the example's files, with copies of the skill in these folders of the workspace."""
    bundle = read_path(EXAMPLE)
    skill = bundle.files["SKILL.md"]
    copies = {f"evals/shop/{folder}/{NAME}/SKILL.md": skill for folder in folders}
    return Bundle(bundle.name, {**bundle.files, **copies}, bundle.executables)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of somebody who has the skill in every program."""
    for folder in AT_HOME:
        place = tmp_path / folder / NAME
        place.mkdir(parents=True)
        (place / "SKILL.md").write_bytes((EXAMPLE / "SKILL.md").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def _ripgrep(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put Codex's copy of ripgrep on the PATH: opencode loads no skill without it, and would download it."""
    (folder,) = PROGRAMS.parent.glob("@openai/codex-*/vendor/*/codex-path")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")
    containment.cache_clear()
    yield
    containment.cache_clear()


def arms_of(kind: str, url: str, bundle: Bundle) -> tuple[SuiteVersion, list[Guidance]]:
    """Store the suite and the program's target; return the arms of its lift: no skill, and the skill."""
    project = make_project()
    give_price(project)
    imported = next(
        each for each in import_files(bundle, project=project, by=None) if each.suite.slug == NAME
    )
    named = {"name": kind, "provider": kind, "executable": str(PROGRAMS / PROGRAMS_OF[kind])}
    given = {"model": MODELS.get(kind, "scripted"), "base_url": url, "api_key": "${{ SCRIPTED_KEY }}"}
    env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
    target = {**named, **given, "env": env}
    import_targets(project, json.dumps({"targets": [target]}).encode(), "targets.yaml", by=None)
    return imported.version, keep_arms(lift_arms([imported.version], []), by=None)


def run_arm(kind: str, version: SuiteVersion, guidance: Guidance) -> Trial:
    """Run one trial of a case with the guidance of an arm, judged by its gate."""
    request = Request(
        [version],
        targets=[kind],
        guidance=[guidance],
        selection=Selection(only=("count-shelf",)),
        options=RunOptions(experiment=True, judge=False),
    )
    launch = request_runs(version.suite.project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here.run_here(launch)
    trial = Trial.objects.select_related("run").get(run__launch=launch)
    assert (trial.run.error, trial.error) == ("", "")
    return trial


@pytest.mark.usefixtures("_ripgrep")
@pytest.mark.parametrize("kind", LOAD)
@pytest.mark.django_db(transaction=True)
def test_the_skill_is_loaded_in_one_arm_and_nowhere_in_the_other(
    kind: str, home: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    settings.ENV_ALLOW = ["*:SCRIPTED_KEY"]
    offered = {
        "when": OFFER,
        "turns": [LOAD[kind], *turns("./stock add lamp 9", "./stock count lamp 7", answer="Counted.")],
    }
    with playing(*turns("./stock list", answer="No idea."), sessions=[offered]) as model:
        version, (none, skill) = arms_of(kind, model.url, example(*IN_WORKSPACE))
        without = run_arm(kind, version, none)
        asked = [json.dumps(each.body) for each in model.player.seen]
        model.player.seen.clear()
        with_skill = run_arm(kind, version, skill)
        told = [json.dumps(each.body) for each in model.player.seen]
    assert asked
    assert [text for word in (NAME, OFFER, CONTENT) for text in asked if word in text] == []
    assert (without.outcome, without.detail.get("exposure")) == ("fail", None)
    # It was told of the skill, and then the skill itself.
    assert [OFFER in text for text in told].count(True) >= 2
    assert any(CONTENT in text for text in told)
    reached = with_skill.detail["exposure"]
    assert (reached["delivered"], reached["opened"]) == (True, True), reached
    assert FILE in reached["opened_paths"]
    assert with_skill.outcome == "pass"


SEARCH = "grep -rs 'GOLD-\\|RULE-' . ; find . -path '*skills*' -type f"
"""Prints every line with an answer or a rule, and which files of the skill are there."""
ANSWERS = {
    "evals/triggers.json": '[{"query": "Count GOLD-7f3a", "should_trigger": true}]',
    "references/more-queries.json": '[{"query": "Count GOLD-7f3a", "should_trigger": true}]',
    "stock-keeping-workspace/iteration-1/eval-1/eval_metadata.json": '{"assertions": ["GOLD-7f3a"]}',
    "stock-keeping-workspace/iteration-1/eval-1/with_skill/run-1/grading.json": '{"evidence": "GOLD-7f3a"}',
    "stock-keeping-workspace/iteration-1/eval-1/with_skill/outputs/commands.sh": "stock count GOLD-7f3a\n",
    "stock-keeping-workspace/iteration-1/benchmark.json": '{"notes": ["GOLD-7f3a"]}',
    "feedback.json": '{"eval-1": "GOLD-7f3a"}',
    "tests/solution.sh": "stock count GOLD-7f3a\n",
}
"""What skill-creator and authors leave in a skill's folder, each with an answer."""


@pytest.mark.usefixtures("_ripgrep")
@pytest.mark.parametrize("kind", ["claude_code", "codex", "opencode"])
@pytest.mark.django_db(transaction=True)
def test_a_workspace_in_the_skill_reaches_no_model_in_either_arm(
    kind: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    settings.ENV_ALLOW = ["*:SCRIPTED_KEY"]
    bundle = example()
    more = {**ANSWERS, "rules/order.md": "RULE-2c9d: count first.\n"}
    files = {**bundle.files, **{path: text.encode() for path, text in more.items()}}
    seen: list[str] = []
    with playing(*turns(SEARCH, answer="Searched.")) as model:
        version, arms = arms_of(kind, model.url, Bundle(bundle.name, files, bundle.executables))
        for arm in arms:
            run_arm(kind, version, arm)
            seen.append("\n".join(json.dumps(each.body) for each in model.player.seen))
            model.player.seen.clear()
    assert [(f"skills/{NAME}/SKILL.md" in text, "RULE-2c9d" in text) for text in seen] == [
        (False, False),
        (True, True),
    ]
    answers = ("GOLD-7f3a", "iteration-1", "grading.json", "triggers.json", "more-queries")
    assert [word for text in seen for word in answers if word in text] == []


@pytest.mark.parametrize("kind", LOAD)
@pytest.mark.django_db(transaction=True)
def test_a_skill_that_is_offered_and_not_loaded_is_not_opened(
    kind: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    settings.ENV_ALLOW = ["*:SCRIPTED_KEY"]
    with playing(*turns("./stock list", answer="No idea.")) as model:
        version, (_, skill) = arms_of(kind, model.url, example())
        trial = run_arm(kind, version, skill)
    assert any(OFFER in json.dumps(each.body) for each in model.player.seen)
    assert not any(CONTENT in json.dumps(each.body) for each in model.player.seen)
    reached = trial.detail["exposure"]
    levels = {name: reached[name] for name in ("delivered", "in_context", "opened", "quoted")}
    assert levels == {"delivered": True, "in_context": False, "opened": False, "quoted": False}
