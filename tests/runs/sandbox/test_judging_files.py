"""An agent that searches everything it can open finds nothing that judges it; judges find all of it afterwards."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from runs.models import Target, Trial
from scenarios.bundles import Bundle
from scenarios.imports import Imported, import_files
from scenarios.models import SuiteVersion
from tests.builders import make_project
from tests.runs.carrying import launch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

SEARCH = r"""#!/bin/sh
# Files around, above and beside the working folder and the workspace; then what processes say of themselves.
places=". .. ../.. ../../.. $1 $1/.."
processes=$$
# What else there is in a sandbox of its own; without one, the host is open to the agent.
if [ -d /workspace ]; then
  places="$places $HOME $TMPDIR /workspace /scratch /tmp /dev/shm /home /root /srv /var/tmp /run"
  processes='*'
fi
for place in $places; do
  [ "$(cd "$place" 2> /dev/null && pwd)" = / ] || grep -rshoaE 'CANARY-[a-z-]+' "$place"
done > "$2.found" 2> /dev/null
for said in /proc/$processes/environ /proc/$processes/cmdline /proc/$processes/fd/*; do
  [ -f "$said" ] && [ "$(readlink "$said")" != "$2.found" ] && grep -shoaE 'CANARY-[a-z-]+' "$said"
done >> "$2.found" 2> /dev/null
sort -u "$2.found" | tr '\n' ' ' > "$2"
"""
JUDGE = """# CANARY-code-judge
import json, pathlib, sys
sys.path.insert(0, "judges")
import weights
right = pathlib.Path("judges/gold.json").read_text() == '"CANARY-gold"' and weights.MARK == "CANARY-module"
root = pathlib.Path(__file__).resolve().parents[2]
found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
print(json.dumps({"score": 1 if right else 0, "reasoning": " ".join(found)}))
"""
BESIDE = """# CANARY-judge-beside
import json, pathlib, compare
told = json.loads(pathlib.Path("references/gold.json").read_text())
print(json.dumps({"score": 1 if told and compare.MARK else 0}))
"""
AGGREGATOR = """# CANARY-aggregator
import json
print(json.dumps({"score": 1}))
"""


def part(path: str) -> dict[str, str]:
    return {"type": "file", "value": path}


def evaluators(case: str) -> list[dict[str, Any]]:
    """Return evaluators that name files in every way."""
    nested = {"name": "a", "type": "code_judge", "script": ["python3", "beside.py"]}
    joined = {"type": "code_judge", "path": "python3 joining/all.py"}
    return [
        {"name": "whole", "type": "code_judge", "script": "python3 judges/score.py"},
        {"name": "both", "type": "composite", "evaluators": [nested], "aggregator": joined},
        {"name": "own", "type": "code_judge", "cwd": "room", "script": f"python3 {case}.py"},
        {"name": "written", "type": "llm_judge", "prompt": f"{case}-prompt.md"},
    ]


def eval_file() -> str:
    """Return two cases. The first one's agent must not see the second one's judge and expected answer."""
    cases = [
        {
            "id": case,
            "expected_outcome": f"CANARY-outcome-{case}",
            "input_messages": [{"role": "user", "content": [part("table.csv"), "What is in it?"]}],
            "expected_messages": [{"role": "assistant", "content": [part(f"{case}-expected.txt")]}],
            "evaluators": evaluators(case),
        }
        for case in ("one", "two")
    ]
    return json.dumps({"evalcases": cases})


JUDGING = {
    "evals/judges/score.py": JUDGE,
    "evals/judges/weights.py": "MARK = 'CANARY-module'\n",
    "evals/judges/gold.json": '"CANARY-gold"',
    "evals/beside.py": BESIDE,
    "evals/compare.py": "MARK = 'CANARY-imported'\n",
    "evals/references/gold.json": '["CANARY-gold-beside"]',
    "evals/joining/all.py": AGGREGATOR,
    "evals/room/one.py": "# CANARY-room-one\nprint('{\"score\": 1}')\n",
    "evals/room/two.py": "# CANARY-room-two\nprint('{\"score\": 1}')\n",
    "evals/one-prompt.md": "CANARY-prompt-one {{candidate_answer}}",
    "evals/two-prompt.md": "CANARY-prompt-two {{candidate_answer}}",
    "evals/one-expected.txt": "CANARY-expected-one",
    "evals/two-expected.txt": "CANARY-expected-two",
}
OTHERS = {
    "evals/shop.golden.json": json.dumps(
        [{"id": "c", "input": {"message": "Hi"}, "expect": {"responseContains": ["CANARY-golden"]}}]
    ),
    "evals/other.yaml": "name: other\ntarget: {binary: x}\ntask: {prompt: Go.}\n"
    "evaluation:\n  gates: [{type: file_contains, path: a, substring: CANARY-scenario}]\n"
    "  judge: {rubric: other-rubric.yaml, pass_threshold: 0.5}\n",
    "evals/other-rubric.yaml": "criteria:\n  - {id: care, weight: 1, description: CANARY-rubric}\n",
    "evals/more.eval.yaml": "evalcases:\n  - {id: m, expected_outcome: CANARY-more, input_messages: [{role: user, content: Hi}]}\n",
}
AGENTS = {
    "evals/search.sh": SEARCH,
    "evals/library.sh": "# CANARY-own-library\n",
    "evals/table.csv": "CANARY-attachment\n",
    "evals/notes.txt": "CANARY-notes\n",
    "other/notes.txt": "of no case\n",
}
KEPT = ["CANARY-attachment", "CANARY-notes", "CANARY-own-library"]
GRADE = {
    "score": 1,
    "scores": {"own": 1, "other": 1},
    "weighted_score": 1,
    "confidence": 1,
    "issues": [],
    "highlights": [],
}
COMMAND = "sh search.sh {WORKSPACE} {OUTPUT_FILE}"


@pytest.fixture(params=["prefer", "off"])
def level(request: pytest.FixtureRequest, settings: Any) -> str:
    settings.SANDBOX = request.param
    return str(request.param)


@pytest.fixture
def project() -> Project:
    project = make_project()
    agent(project, COMMAND)
    return project


def agent(project: Project, command: str, **more: Any) -> None:
    definition = {
        "name": "agent",
        "provider": "cli",
        "command_template": command,
        "judge_target": "judge",
        **more,
    }
    judge = {"name": "judge", "provider": "mock", "response": json.dumps(GRADE)}
    Target.objects.update_or_create(
        project=project, name="judge", defaults={"provider": "mock", "definition": judge}
    )
    Target.objects.update_or_create(
        project=project, name="agent", defaults={"provider": "cli", "definition": definition}
    )


def imported(project: Project, files: dict[str, str]) -> tuple[Imported, ...]:
    return import_files(
        Bundle("b", {path: text.encode() for path, text in files.items()}), project=project, by=None
    )


def carried(version: SuiteVersion) -> dict[str, Trial]:
    run_here.run_here(launch(version, targets=["agent"]))
    trials = Trial.objects.filter(run__suite_version=version).select_related("scenario")
    assert [(trial.error, trial.run.error) for trial in trials if trial.error or trial.run.error] == []
    return {trial.scenario.key: trial for trial in trials}


def found(trial: Trial) -> list[str]:
    return trial.answer.split()


@pytest.mark.sampled(1)
def test_an_agent_finds_what_is_its_own_and_nothing_that_judges(project, level):
    files = {"evals/work.eval.yaml": eval_file(), **JUDGING, **OTHERS, **AGENTS}
    version = next(each.version for each in imported(project, files) if each.suite.name == "work.eval")
    trials = carried(version)
    assert set(trials) == {"one", "two"}
    for trial in trials.values():
        assert found(trial) == KEPT
        assert trial.outcome == "pass", trial.scores
        scores = {score["name"]: score for score in trial.scores}
        assert (scores["whole"]["value"], scores["both/a"]["value"], scores["own"]["value"]) == (1, 1, 1)
        # What judges see is what they saw before: all but eval files, which hold the answers of every case.
        assert scores["whole"]["detail"]["reasoning"].split() == sorted(
            path for path in files if path.startswith("evals/") and not path.endswith("eval.yaml")
        )


def case(prompt: str = "Go.", **changes: Any) -> str:
    """Return an eval file with one case."""
    asked = {"id": "one", "expected_outcome": "x", "input_messages": [{"role": "user", "content": prompt}]}
    return json.dumps({"evalcases": [asked | changes]})


def judged_by(script: str, **more: Any) -> dict[str, Any]:
    return {"evaluators": [{"type": "code_judge", "script": script, **more}]}


@pytest.mark.sampled(1)
def test_a_target_that_lies_beside_its_judge_keeps_its_files(project, level):
    agent(project, "sh tools/search.sh {WORKSPACE} {OUTPUT_FILE}")
    mine = SEARCH.replace("#!/bin/sh\n", "#!/bin/sh\n. tools/shared.sh\n")
    files = {
        "work.eval.yaml": case(**judged_by("sh tools/judge.sh")),
        "tools/search.sh": mine,
        "tools/shared.sh": "# CANARY-shared\n",
        "tools/prices.txt": "CANARY-prices\n",
        "tools/judge.sh": ". tools/shared.sh; # CANARY-judge\nprintf '{\"score\": 1}'\n",
    }
    ((_, trial),) = carried(imported(project, files)[0].version).items()
    assert found(trial) == ["CANARY-prices", "CANARY-shared"]
    assert trial.outcome == "pass"


def test_a_folder_without_a_file_for_the_agent_is_there(project, level):
    agent(project, "pwd > {OUTPUT_FILE}; ls >> {OUTPUT_FILE}")
    files = {
        "evals/work.eval.yaml": case(**judged_by("sh judge.sh")),
        "evals/judge.sh": "printf '{\"score\": 1}'\n",
    }
    ((_, trial),) = carried(imported(project, files)[0].version).items()
    assert trial.answer.strip().endswith("/evals")
    assert trial.outcome == "pass"


@pytest.mark.parametrize(
    "planted",
    [
        "mkdir judges; echo 'print(1)' > judges/score.py",
        "ln -s /tmp judges",
        "mkdir -p judges/score.py",
        "echo > judges",
    ],
    ids=["a script", "a link", "a folder", "a file for a folder"],
)
def test_what_an_agent_plants_in_a_judges_place_is_an_error(project, settings, planted):
    settings.SANDBOX = "off"
    agent(project, "sh -c {PROMPT}; echo hi > {OUTPUT_FILE}")
    files = {
        "evals/work.eval.yaml": case(planted, **judged_by("python3 judges/score.py")),
        "evals/judges/score.py": "print('{\"score\": 0}')\n",
    }
    version = imported(project, files)[0].version
    run_here.run_here(launch(version, targets=["agent"]))
    trial = Trial.objects.get()
    assert (trial.outcome, trial.error_kind) == ("error", "command")
    assert "wrote to bundle/evals/judges/score.py, where only evalhub writes" in trial.error


SCENARIO = """
name: {name}
description: CANARY-description-{name}
target: {{binary: bin/tool}}
template_folder: box
hidden: [gold/**]
task: {{prompt: Search.}}
evaluation:
  gates: [{{type: command_output_contains, command: cat gold/answer.txt rubrics/own.yaml, substring: CANARY-own}}]
  judge: {{rubric: templates/box/rubrics/{rubric}.yaml, pass_threshold: 0.5}}
scripts:
  evaluators: [{{name: gold, command: 'sh gold/evaluate.sh'}}]
"""
RUBRIC = "name: {name}\ncriteria:\n  - {{id: {name}, weight: 1.0, description: CANARY-{name}-rubric}}\n"


@pytest.mark.slow
def test_a_workspace_has_no_scenario_rubric_or_solution(project, settings):
    """In a sandbox: without one, the kept files lie on the host, as all else does."""
    settings.SANDBOX = "prefer"
    box = {
        "bin/tool": "#!/bin/sh\n",
        "search.sh": SEARCH,
        "notes.txt": "CANARY-notes",
        "criteria.yaml": "criteria: [CANARY-other-criteria]\n",
        "gold/answer.txt": "CANARY-answer",
        "gold/evaluate.sh": "# CANARY-evaluator\necho '{\"score\": 1}'\n",
        "rubrics/own.yaml": RUBRIC.format(name="own"),
        "rubrics/other.yaml": RUBRIC.format(name="other"),
    }
    files = {f"templates/box/{path}": text for path, text in box.items()}
    for name in ("own", "other"):
        files[f"scenarios/{name}.yaml"] = SCENARIO.format(name=name, rubric=name)
        files[f"scenarios/solutions/{name}.sh"] = f"# CANARY-solution-{name}\n"
    agent(project, COMMAND)
    trials = carried(imported(project, files)[0].version)
    assert {name: trial.outcome for name, trial in trials.items()} == {"own": "pass", "other": "pass"}
    for name, trial in trials.items():
        assert found(trial) == ["CANARY-notes", "CANARY-other-criteria"], name
        assert [score["passed"] for score in trial.scores if score["layer"] == "gates"] == [True]
        assert [score["value"] for score in trial.scores if score["layer"] == "scripts"] == [1]


@pytest.mark.sampled(1)
def test_an_eval_case_shows_nothing_of_its_suite(project, level):
    cases = [
        {
            "id": each,
            "input": {"message": "Hi"},
            "expect": {"responseNotContains": [f"CANARY-unwanted-{each}"]},
        }
        for each in ("one", "two")
    ]
    files = {"shop.golden.json": json.dumps(cases), "seed-manifest.json": '{"secret": "CANARY-seed"}'}
    program = base64.b64encode(SEARCH.encode()).decode()
    agent(project, f"echo {program} | base64 -d > search.sh; {COMMAND}")
    for trial in carried(imported(project, files)[0].version).values():
        assert found(trial) == []
