"""Trials of a skill: the files in the workspace, whether the agent loads it, and how statements and triggers are judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.errors import RequestError
from runs.launch import inputs
from runs.launch.lift import drop_triggers, keep_arms, lift_arms
from runs.launch.request import Request, request_runs
from runs.launch.run_request import RunRequest
from runs.models import Run
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from runs.results.digests import trials_of
from runs.results.run_page.layers import layers_of
from scenarios.bundles import Bundle, read_path
from scenarios.imports import import_files
from tests.builders import make_project
from tests.runs.carrying import shell_target

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
EXAMPLES = Path(__file__).parents[4] / "scenarios/examples"
QUERIES = [
    {"query": "Which of our stock is low?\n- list the items\n", "should_trigger": True},
    {"query": "What are the items worth?\n- list the items\n", "should_trigger": True},
    {"query": "How did the stock market do?\n- list the items\n", "should_trigger": False},
    {"query": "Write a poem.\n- list the items\n", "should_trigger": False},
]


@pytest.fixture
def project() -> Project:
    made = make_project("default")
    inputs.import_targets_file(made, EXAMPLES / "targets.yaml", by=None)
    return made


def run_suite(project: Project, bundle: Bundle, slug: str, target: str, **options: int) -> Run:
    imported = {each.suite.slug: each for each in import_files(bundle, project=project, by=None)}
    request = Request([imported[slug].version], targets=[target], options=RunOptions(**options))
    launched = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here.run_here(launched)
    return launched.runs.get()


def bundle_with(**files: str) -> Bundle:
    bundle = read_path(EXAMPLES / "stock-keeping")
    more = {path: text.encode() for path, text in files.items()}
    return Bundle(bundle.name, {**bundle.files, **more}, bundle.executables)


def test_the_agent_loads_the_skill_and_all_its_statements_hold(project):
    run = run_suite(project, bundle_with(), "stock-keeping", "scripted-agent")
    assert (run.passed, run.failed, run.errors) == (3, 0, 0), run.error
    trial = run.trial_set.get(scenario__key="count-shelf")
    reached = trial.detail["exposure"]
    assert reached["opened_paths"] == [".agents/skills/stock-keeping/SKILL.md"]
    judged = {each["name"]: each["value"] for each in trial.scores if each["layer"] == "judge"}
    assert judged["judge"] == 1.0
    assert judged["criterion.the_agent_ran_stock_count_lamp_7"] == 1.0
    caption = layers_of(run, trials_of(run), None).judge_caption
    assert caption == "mean share of statements, all hold in 3 of 3"


@pytest.mark.slow
def test_a_statement_that_does_not_hold_fails_the_trial(project):
    evals = (
        (EXAMPLES / "stock-keeping/evals/evals.json")
        .read_text()
        .replace("`stock count lamp 7`", "`stock audit`")
    )
    run = run_suite(project, bundle_with(**{"evals/evals.json": evals}), "stock-keeping", "scripted-agent")
    trial = run.trial_set.get(scenario__key="count-shelf")
    (verdict,) = [each for each in trial.scores if each["name"] == "judge"]
    assert (trial.outcome, verdict["value"]) == ("fail", 0.5)


def test_the_workspace_has_the_named_files_and_the_skill_but_no_evals(project):
    shell_target(project)
    evals = json.dumps(
        {"skill_name": "stock-keeping", "evals": [
            {"id": 1, "prompt": "find . -type f | sort", "files": ["evals/files/delivery.txt"], "scorers": [
                {"type": "regex", "pattern": "delivery"}]}]}
    )  # fmt: skip
    run = run_suite(
        project,
        bundle_with(**{"evals/evals.json": evals, "evals/gates.yaml": "tool: find\n"}),
        "stock-keeping",
        "shell",
    )
    trial = run.trial_set.get()
    assert trial.answer.split() == ["./.agents/skills/stock-keeping/SKILL.md", "./evals/files/delivery.txt"]
    assert trial.outcome == "pass"


def test_no_arm_has_a_workspace_of_skill_creator(project):
    shell_target(project, skills_folder=".claude/skills")
    evals = json.dumps(
        {"skill_name": "stock-keeping", "evals": [
            {"id": 1, "prompt": "find . -type f | sort", "scorers": [{"type": "regex", "pattern": "SKILL"}]}]}
    )  # fmt: skip
    at = "stock-keeping-workspace/iteration-1/eval-1"
    answers = dict.fromkeys((f"{at}/eval_metadata.json", f"{at}/with_skill/grading.json"), "{}")
    answers |= {f"{at}/with_skill/outputs/commands.sh": "stock list\n", "benchmark.json": "{}"}
    bundle = bundle_with(**{"evals/evals.json": evals, "evals/gates.yaml": "tool: find\n", **answers})
    (imported,) = import_files(bundle, project=project, by=None)
    arms = keep_arms(lift_arms([imported.version], ()), by=None)
    request = Request([imported.version], targets=["shell"], guidance=arms)
    launched = request_runs(project, request, by=None, trigger=Trigger.CLI, wake=False)
    run_here.run_here(launched)
    without, skill = (run.trial_set.get() for run in launched.runs.order_by("pk"))
    assert without.answer.split() == []
    assert skill.answer.split() == [
        f"./{folder}/skills/stock-keeping/SKILL.md" for folder in (".agents", ".claude")
    ]


def test_without_its_skill_no_form_of_it_is_in_the_workspace_or_at_home(project):
    shell_target(project, skills_folder=".claude/skills")
    evals = json.dumps(
        {"skill_name": "stock-keeping", "evals": [
            {"id": 1, "prompt": "find . \"$HOME\" -type f -path '*skills/*' | sort", "scorers": [
                {"type": "regex", "pattern": "skills"}]}]}
    )  # fmt: skip
    own = "evals/shop/.claude/skills/stock-keeping"
    bundle = bundle_with(
        **{
            "evals/evals.json": evals,
            "evals/gates.yaml": "tool: find\nworkspace: shop\n",
            f"{own}/SKILL.md": "---\nname: stock-keeping\ndescription: Of the project.\n---\n",
            f"{own}/scripts/count.sh": "./stock count\n",
            "evals/shop/plugin/skills/stock-keeping/SKILL.md": "---\nname: stock-keeping\n---\n",
            "evals/shop/plugin/skills/stock-keeping/note.md": "Count.\n",
        }
    )
    (imported,) = import_files(bundle, project=project, by=None)
    arms = keep_arms(lift_arms([imported.version], ()), by=None)
    launched = request_runs(
        project,
        Request([imported.version], targets=["shell"], guidance=arms),
        by=None,
        trigger=Trigger.CLI,
        wake=False,
    )
    run_here.run_here(launched)
    without, skill = (run.trial_set.get() for run in launched.runs.order_by("pk"))
    assert without.answer.split() == []
    assert skill.answer.split() == [
        "./.agents/skills/stock-keeping/SKILL.md",
        "./.claude/skills/stock-keeping/SKILL.md",
        "./.claude/skills/stock-keeping/scripts/count.sh",
        "./plugin/skills/stock-keeping/SKILL.md",
        "./plugin/skills/stock-keeping/note.md",
    ]


def test_trigger_queries_give_sensitivity_and_specificity(project):
    bundle = bundle_with(**{"evals/trigger-eval.json": json.dumps(QUERIES)})
    run = run_suite(project, bundle, "stock-keeping-triggers", "scripted-agent", trials=2)
    outcomes = dict(run.trial_set.values_list("scenario__key", "outcome"))
    assert list(outcomes.values()).count("pass") == 2
    rates = {each.label: each for each in layers_of(run, trials_of(run), None).triggers}
    assert {label: (each.passed, each.trials, each.queries) for label, each in rates.items()} == {
        "Sensitivity": (2, 4, 2),
        "Specificity": (2, 4, 2),
    }
    interval = rates["Sensitivity"].interval
    # Wilson's interval of 1 of 2 queries, not of 2 of 4 trials.
    assert (round(interval.lower, 3), round(interval.upper, 3)) == (0.095, 0.905)


def test_a_lift_leaves_out_trigger_queries_and_compares_one_version_with_none(project):
    bundle = bundle_with(**{"evals/trigger-eval.json": json.dumps(QUERIES)})
    imported = {each.suite.slug: each for each in import_files(bundle, project=project, by=None)}
    cases, triggers = imported["stock-keeping"], imported["stock-keeping-triggers"]
    assert drop_triggers([triggers.version, cases.version]) == [cases.version]
    request = RunRequest(lift=True)
    with pytest.raises(RequestError, match="Trigger queries have no lift"):
        request.resolve([triggers.version], ())
    two = [cases.guidance, *keep_arms(lift_arms([cases.version], ()), by=None)[:1]]
    with pytest.raises(RequestError, match="Choose one version"):
        request.resolve([cases.version], two)
    planned = request.resolve([triggers.version, cases.version], ())
    assert (planned.suite_versions, planned.guidance) == ([cases.version], two[::-1])
    assert (planned.options.until_decided, planned.options.experiment) == (True, True)
