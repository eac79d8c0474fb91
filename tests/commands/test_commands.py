"""Every command: exit codes, `--json`, and sentences instead of tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from runs.exchange.exports.result_formats import junit_xml
from runs.models import Run, Target
from scenarios.models import Suite, SuiteVersion
from tests.builders import make_project, make_run, make_suite, make_target, make_trial
from tests.commands.calling import call
from tests.embedded_data import make_data

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]
GOOD = """name: good
description: Something simple.
target: {binary: sh}
task: {prompt: echo done > out.txt}
evaluation:
  gates:
    - {type: file_exists, path: out.txt}
"""
TARGETS = 'targets:\n  - name: shell\n    provider: cli\n    command_template: "sh -c {PROMPT}"\n'
BROKEN = "name: broken\ntask: {prompt: 5}\nevaluation:\n  gates: [{type: file_exist, path: x}]\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    bad = GOOD.replace("name: good", "name: bad").replace("path: out.txt", "path: none.txt")
    (tmp_path / "bad.yaml").write_text(bad)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


def run_now(files: Path, *words: str):
    return call(
        "run_scenarios", *words, "--targets", str(files / "targets.yaml"), "--target", "shell", "--now"
    )


@pytest.mark.django_db
class TestImportScenarios:
    def test_it_lists_new_and_unchanged_versions(self, files):
        assert "good v1 (new): 1 scenario; 1 added" in call("import_scenarios", str(files / "good.yaml")).out
        again = call("import_scenarios", str(files / "good.yaml"), "--json").document
        assert (again["suites"][0]["new_version"], again["suites"][0]["unchanged"]) == (False, ["good"])

    def test_a_wrong_file_beside_a_good_one_stores_neither(self, files):
        called = call("import_scenarios", str(files / "good.yaml"), str(files / "broken.yaml"))
        assert called.code == 2
        assert "broken.yaml:" in called.err
        assert not Suite.objects.exists()

    def test_an_unknown_project_is_reported_with_the_known_ones(self, files):
        make_project("tools")
        called = call("import_scenarios", str(files / "good.yaml"), "--project", "tols", "--json")
        assert (called.code, called.document["id"]) == (2, "project/unknown")
        assert "tools" in called.document["detail"]

    def test_a_missing_path_is_reported(self):
        called = call("import_scenarios", "/no/such/place", "--json")
        assert (called.code, called.document["problems"][0]["id"]) == (2, "bundle/unreadable")


@pytest.mark.django_db
class TestCheckScenarios:
    @pytest.mark.parametrize(
        ("name", "words", "code"),
        [("good.yaml", [], 0), ("good.yaml", ["--strict"], 0), ("broken.yaml", [], 2)],
        ids=["good", "good and strict", "broken"],
    )
    def test_its_exit_code(self, files, name, words, code):
        assert call("check_scenarios", str(files / name), *words).code == code
        assert not Suite.objects.exists()

    def test_hints_fail_only_when_strict(self, files):
        (files / "hint.yaml").write_text(GOOD.replace("target: {binary: sh}\n", ""))
        assert call("check_scenarios", str(files / "hint.yaml")).code == 0
        assert call("check_scenarios", str(files / "hint.yaml"), "--strict").code == 1

    def test_it_lists_what_an_agent_with_the_skill_gets(self, tmp_path):
        cases = {"skill_name": "notes", "evals": [{"id": 1, "prompt": "List.", "assertions": ["It lists."]}]}
        triggers = [{"query": "List my notes.", "should_trigger": True}]
        files = {
            "SKILL.md": "---\nname: notes\ndescription: Notes.\n---\n",
            "rules/order.md": "By title.\n",
            "evals/evals.json": json.dumps(cases),
            "evals/triggers.json": json.dumps(triggers),
            "notes-workspace/iteration-1/eval-1/eval_metadata.json": "{}",
            "notes-workspace/iteration-1/eval-1/with_skill/outputs/commands.sh": "notes list\n",
        }
        for path, text in files.items():
            (tmp_path / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "notes" / path).write_text(text)
        lines = call("check_scenarios", str(tmp_path / "notes")).out.splitlines()
        assert lines[:4] == [
            "notes, notes-triggers: An agent with the skill gets 2 files, 50 bytes.",
            "           40  .agents/skills/notes/SKILL.md",
            "           10  .agents/skills/notes/rules/order.md",
            "Left out: evals/ (2 files), notes-workspace/ (2 files).",
        ]
        (laid,) = call("check_scenarios", str(tmp_path / "notes"), "--json").document["laid_in"]
        assert laid["files"][0] == {"path": ".agents/skills/notes/SKILL.md", "bytes": 40}
        assert laid["left_out"] == ["evals/ (2 files)", "notes-workspace/ (2 files)"]


@pytest.mark.django_db(transaction=True)
class TestRunScenarios:
    def test_a_targets_file_that_changed_alone_is_taken_as_it_is_now(self, files):
        (files / "bad.yaml").unlink()
        (files / "broken.yaml").unlink()
        for workers in (2, 3):
            (files / "targets.yaml").write_text(f"{TARGETS}    workers: {workers}\n")
            assert call("run_scenarios", str(files), "--target", "shell", "--now").code == 0
        assert Target.objects.get().workers == 3
        assert SuiteVersion.objects.count() == 1

    def test_a_failure_is_1_and_says_why_and_nothing_to_compare_with_is_no_regression(self, files):
        called = run_now(files, str(files / "bad.yaml"), "--fail-on-regression")
        assert called.code == 1
        assert "none.txt does not exist." in called.out
        assert "No longer passing" not in called.out

    def test_json_is_one_document(self, files):
        document = run_now(files, str(files / "good.yaml"), "--json", "--trials", "2").document
        (run,) = document["runs"]
        assert (run["run"]["state"], run["run"]["passed"], len(run["trials"])) == ("finished", 2, 2)
        assert run["trials"][0]["gates"][0]["passed"] is True

    def test_it_writes_json_and_junit_files(self, files):
        places = ("--json-file", str(files / "o/x.json"), "--junit-file", str(files / "x.xml"))
        run_now(files, str(files / "bad.yaml"), *places)
        assert json.loads((files / "o/x.json").read_text())["runs"][0]["run"]["failed"] == 1
        suite = ElementTree.parse(files / "x.xml").getroot()[0]
        assert (suite.get("failures"), suite.findall("testcase")[0].get("name")) == ("1", "bad")

    @pytest.mark.parametrize(
        ("words", "identifier"),
        [
            (["nowhere"], "request/invalid"),
            (["good.yaml", "--target", "shel"], "request/unknown-target"),
            (["good.yaml", "--only", "nothing"], "request/nothing-to-run"),
            (["good.yaml", "--trials", "0"], "command/wrong-use"),
            (["broken.yaml"], "files/refused"),
        ],
        ids=["no such suite", "no such target", "no such key", "no trials", "a broken file"],
    )
    def test_wrong_use_is_2(self, files, words, identifier):
        words = [str(files / word) if word.endswith(".yaml") else word for word in words]
        called = call("run_scenarios", *words, "--targets", str(files / "targets.yaml"), "--now", "--json")
        assert (called.code, called.document["id"]) == (2, identifier)
        assert called.document["detail"][-1] in ".?"
        assert not Run.objects.exists()

    def test_a_dry_run_lists_what_would_run_and_stores_nothing(self, files):
        words = (str(files / "good.yaml"), "--targets", str(files / "targets.yaml"), "--dry-run", "--json")
        called = call("run_scenarios", *words)
        assert called.document["runs"][0]["trials"] == 1
        assert not Run.objects.exists()
        assert not SuiteVersion.objects.exists()

    def test_a_stored_suite_is_run_by_its_name(self, files):
        call("import_scenarios", str(files / "good.yaml"))
        called = run_now(files, "good")
        assert called.code == 0, called.err
        assert "1/1 passed" in called.out


@pytest.mark.django_db
class TestShowRun:
    @pytest.mark.parametrize(("outcome", "code"), [("pass", 0), ("fail", 1), ("error", 1)])
    def test_its_exit_code_is_the_runs(self, outcome, code):
        make_target(make_project())
        run = make_run(make_suite(make_project("others")))
        make_trial(run, outcome=outcome)
        called = call("show_run", str(run.pk), "--json")
        assert (called.code, called.document["run"]["outcome"]) == (code, outcome)

    def test_a_run_that_does_not_exist_is_2(self):
        called = call("show_run", "4711", "--json")
        assert (called.code, called.document["id"]) == (2, "run/unknown")


def test_junit_is_well_formed_whatever_the_texts_hold():
    awkward = "a\x00b\x1b[31m\ud800<&>\"' \ufffe ]]> ✓"
    counts = {"trials": 2, "failed": 1, "errors": 1, "cancelled": 0}
    run = {"suite": awkward, "target": "t", "seconds": None, **counts}
    failed = [{"layer": "gates", "name": "x", "passed": False, "message": awkward}]
    trials = [
        {"scenario": awkward, "index": 0, "seconds": 1.0, "outcome": "error", "error": awkward, "scores": []},
        {"scenario": "x", "index": 1, "seconds": None, "outcome": "fail", "error": "", "scores": failed},
    ]
    suite = ElementTree.fromstring(junit_xml([{"run": run, "trials": trials}]).encode())[0]
    cases = suite.findall("testcase")
    error, failure = cases[0].find("error"), cases[1].find("failure")
    assert error is not None
    assert failure is not None
    assert error.text == failure.text == "ab[31m<&>\"'  ]]> ✓"
    assert cases[1].get("name") == "x #2"


@pytest.mark.slow
def test_one_trial_from_the_command_line_imports_nothing_heavy(tmp_path, files):
    program = (
        "import os, sys\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'evalhub.settings'\n"
        "from django.core.management import execute_from_command_line\n"
        f"words = ['manage.py', 'run_scenarios', {str(files / 'good.yaml')!r}, '--targets', {str(files / 'targets.yaml')!r}, '--now']\n"
        "execute_from_command_line(words)\n"
        "heavy = {'celery', 'ninja', 'litellm', 'scipy', 'numpy', 'ruptures'}\n"
        "found = sorted(heavy & set(sys.modules))\n"
        "sys.exit(f'imported: {found}' if found else 0)\n"
    )
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "EVALHUB_BROKER_URL", "DJANGO_SETTINGS_MODULE")
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**env, "EVALHUB_DATA": str(make_data(tmp_path / "data"))},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "1/1 passed" in done.stdout


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("threshold", "trials", "code"), [(0.2, 2, 0), (0.9, 2, 1), (0.2, 1, 1)])
def test_the_exit_code_follows_the_release_rule(tmp_path, threshold, trials, code):
    (tmp_path / "targets.yaml").write_text(TARGETS)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(
        GOOD.replace("name: good", "name: bad").replace("path: out.txt", "path: no")
    )
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in ("good", "bad"):
        (tmp_path / f"{name}.yaml").rename(folder / f"{name}.yaml")
    assert call("import_scenarios", str(folder)).code == 0
    target = ("--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--now")
    words = ("run_scenarios", "suite", *target, "--trials", str(trials), "--fail-on-release-rule")
    refused = call(*words)
    assert (refused.code, "suite has no release rule" in refused.err) == (2, True)
    Suite.objects.update(release_k=2, release_threshold=threshold)
    called = call(*words)
    assert called.code == code
    assert "Release rule: pass^2" in called.out
    assert ("1 trial of each scenario can't measure" in called.err) is (trials == 1)
