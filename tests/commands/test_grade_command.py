"""`manage.py grade FILE`."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from runs.models import Trial
from tests.greeting import SUCCEEDS, greeting

pytestmark = pytest.mark.one_database

SUITE = greeting(SUCCEEDS)


def grade(tmp_path: Path, request: Any) -> tuple[int, str, str]:
    """Return exit code, output and errors of grading a request as JSON."""
    file = tmp_path / "request.json"
    file.write_text(request if isinstance(request, str) else json.dumps(request))
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("grade", str(file), "--json", stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def given(content: str = "hello", **more: Any) -> dict[str, Any]:
    return {"suite": {"name": "x.yaml", "text": SUITE}, "evidence": {"files": {"out.txt": content}}, **more}


@pytest.mark.parametrize(("content", "outcome", "exits"), [("hello", "pass", 0), ("goodbye", "fail", 1)])
def test_it_grades_with_commands_and_stores_nothing(db, tmp_path, content, outcome, exits):
    code, out, _ = grade(tmp_path, given(content))
    assert (code, json.loads(out)["outcome"]) == (exits, outcome)
    assert not Trial.objects.exists()


@pytest.mark.parametrize(
    ("request_", "id"),
    [
        ("{", "grade/request"),
        ({"suite": {"text": ""}, "evidenz": {}}, "grade/request"),
        (given(scenario="nope"), "request/invalid"),
        ({"suite": {"name": "x.yaml", "text": "a: b"}}, "files/refused"),
    ],
    ids=["no JSON", "misspelt", "no such scenario", "no scenario"],
)
def test_it_reports_what_is_wrong_with_the_request(db, tmp_path, request_, id):
    code, out, _ = grade(tmp_path, request_)
    assert code == 2
    report = json.loads(out)
    assert report["id"] == id
    assert report["detail"].endswith(".")


def test_it_prints_for_people(db, tmp_path):
    file = tmp_path / "request.json"
    file.write_text(json.dumps(given()))
    out = StringIO()
    call_command("grade", str(file), stdout=out)
    assert out.getvalue().startswith("greet: pass\n")
    assert "✓ gates/command_succeeds: 1" in out.getvalue()


CASES = Path(__file__).parents[1] / "files/cases"


@pytest.mark.parametrize("case", ["think.json", "draft-then-final.json"])
def test_a_judges_thoughts_and_drafts_are_no_answers(db, tmp_path, case):
    code, out, _ = grade(tmp_path, (CASES / "13" / case).read_text())
    (judging,) = json.loads(out)["judgings"]
    assert (code, judging["score"], judging["error"]) == (0, 0.74, "")


def test_a_judges_wrong_sum_is_said(db, tmp_path):
    code, out, _ = grade(tmp_path, (CASES / "12/low-criteria-high-total.json").read_text())
    found = json.loads(out)
    assert (code, found["judgings"][0]["mismatch"]) == (0, True)
    (warning,) = found["warnings"]
    assert warning.startswith("The judge reported 0.95, but its criteria give 0.10 by the rubric's weights.")
    text = StringIO()
    call_command("grade", str(CASES / "12/low-criteria-high-total.json"), stdout=text)
    assert f"⚠ {warning}" in text.getvalue()


def test_a_scenario_can_make_a_wrong_sum_an_error(db, tmp_path):
    request = (CASES / "12/low-criteria-high-total.json").read_text()
    limited = request.replace("pass_threshold: 0.7", "pass_threshold: 0.7\\n    on_mismatch: error")
    code, out, _ = grade(tmp_path, limited)
    found = json.loads(out)
    assert (code, found["outcome"], found["warnings"]) == (1, "error", [])
    assert "reported 0.95, but its criteria give 0.10" in found["error"]


def test_arguments_of_a_trajectory_are_compared(db, tmp_path):
    code, out, _ = grade(tmp_path, (CASES / "10/args.json").read_text())
    found = json.loads(out)
    assert (code, found["outcome"]) == (1, "fail")
    (score,) = (each for each in found["scores"] if each["name"] == "traj")
    assert score["value"] == 0
    assert "COMPLETELY DIFFERENT" in score["message"]


def test_it_does_not_load_the_rest_interface():
    module = "runs.management.commands.grade"
    code = f"import django, sys; django.setup(); import {module}; print('ninja' in sys.modules)"
    env = {"DJANGO_SETTINGS_MODULE": "evalhub.settings", "EVALHUB_DATA": str(settings.DATA_DIR), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_the_web_process_loads_no_model_library():
    code = (
        "import django, sys; django.setup(); import evalhub.urls, evalhub.api_urls;"
        "print([name for name in ('litellm', 'scipy', 'numpy') if name in sys.modules])"
    )
    env = {"DJANGO_SETTINGS_MODULE": "evalhub.settings", "EVALHUB_DATA": str(settings.DATA_DIR), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "[]"
