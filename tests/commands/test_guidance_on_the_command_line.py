"""`--guidance FILE`: which of the suite's documents it takes the place of, and that the run says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.access import default_project
from runs.exchange.exports.console import name_run
from runs.exchange.exports.document import run_document
from runs.models import Run
from scenarios.models import Guidance
from tests.commands.calling import call
from tests.runs.carrying import shell_target

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a suite whose agent prints the guidance of its workspace."""
    project = default_project()
    shell_target(project)
    folder = tmp_path / "suite"
    for path, text in {
        "scenarios/reads.yaml": (
            "name: reads\ntarget: {binary: tool}\n"
            "task: {prompt: 'ls; cat *.md docs/*.md; true'}\ntemplate_folder: shop\n"
            "evaluation: {gates: [{type: file_exists, path: stock.txt}]}\n"
        ),
        "fixtures/templates/shop/stock.txt": "x",
        "fixtures/templates/shop/AGENTS.md": "old advice\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def ran(suite: Path, *words: str) -> Run:
    ended = call("run_scenarios", str(suite), "--target", "shell", "--now", "--json", *words)
    assert ended.code in (0, 1), ended.err
    return Run.objects.order_by("pk").last()


def test_a_file_of_any_name_takes_the_place_of_the_suites_document(suite, tmp_path):
    (tmp_path / "good.md").write_text("new advice\n")
    words = ("--target", "shell", "--guidance", str(tmp_path / "good.md"), "--dry-run", "--json")
    planned = call("run_scenarios", str(suite), *words).document
    assert [row["guidance"] for row in planned["runs"]] == ["good.md over AGENTS.md"]
    run = ran(suite, "--guidance", str(tmp_path / "good.md"))
    answer = run.trial_set.get().answer
    assert "new advice" in answer and "old advice" not in answer
    assert "AGENTS.md" in answer and "good.md" not in answer
    assert str(run.guidance) == "good.md over AGENTS.md"
    assert run.fingerprint["names"]["guidance"] == "AGENTS.md"
    assert (run.guidance.laid_file, run.guidance.laid_path) == ("good.md", "AGENTS.md")
    run.guidance.name = "better"
    run.guidance.save()
    document = run_document(run.pk)
    assert document["run"]["guidance_path"] == "AGENTS.md"
    assert "guidance better over AGENTS.md" in name_run(document["run"])


def test_other_documents_stay_and_ambiguous_ones_are_reported(suite, tmp_path):
    (suite / "fixtures/templates/shop/docs").mkdir()
    (suite / "fixtures/templates/shop/docs/CLAUDE.md").write_text("more advice\n")
    good = tmp_path / "good.md"
    good.write_text("new advice\n")
    words = ("run_scenarios", str(suite), "--target", "shell", "--now")
    ended = call(*words, "--guidance", str(good))
    assert (ended.code, ended.err.strip()) == (
        2,
        f"{good}: 'good.md' could take the place of several documents: AGENTS.md, docs/CLAUDE.md. "
        f"Name its path in the workspace: --guidance PATH={good}.",
    )
    answer = ran(suite, "--guidance", f"AGENTS.md={good}").trial_set.get().answer
    assert "new advice" in answer and "more advice" in answer and "old advice" not in answer


def test_a_path_out_of_the_workspace_is_refused(suite, tmp_path):
    (tmp_path / "good.md").write_text("x")
    words = ("--target", "shell", "--guidance", f"../a.md={tmp_path / 'good.md'}", "--now")
    ended = call("run_scenarios", str(suite), *words)
    assert ended.code == 2
    assert "'../a.md' is outside the workspace" in ended.err
    assert [each.files[0]["content"] for each in Guidance.objects.all()] == ["old advice\n"]


def exposed(suite: Path, **options: Any) -> tuple[Run, dict[str, Any]]:
    target = default_project().targets.get(name="shell")
    target.definition |= options
    target.save()
    run = ran(suite)
    return run, run.trial_set.get().detail["exposure"]


def test_guidance_is_also_laid_under_the_agents_own_name(suite):
    run, found = exposed(suite, guidance_file="CLAUDE.md")
    trial = run.trial_set.get()
    assert "CLAUDE.md" in trial.answer
    assert (found["delivered"], found["in_context"]) == (True, True)
    assert found["laid_as"] == ["CLAUDE.md"]
    assert trial.detail["workspace"]["files"] == []
    assert [each["path"] for each in run.guidance.files] == ["AGENTS.md"]


@pytest.mark.parametrize(
    ("given", "expected"), [("none", (True, None)), (False, (True, None)), ("AGENTS.md", (True, True))]
)
def test_a_target_can_switch_the_copy_off(suite, given, expected):
    _, found = exposed(suite, guidance_file=given)
    assert (found["delivered"], found["in_context"]) == expected
    assert found["laid_as"] == []
