"""CLI Template Execution and Configuration of the AgentV specification, from the targets file to the stored trial."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runs.models import Artifact, Run, Trial
from runs.targets.agents.cli import LONGEST_SHOWN
from tests.agentv.eval_folder import cases, put, records, run_folder, the_run
from tests.commands.calling import call
from tests.kept_files import path_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

PRINTS_ARGUMENTS = """import json, pathlib, sys
output, *words = sys.argv[1:]
pathlib.Path(output).write_text(json.dumps({"text": json.dumps([output, *words])}))
print("this is noise")
"""
EVAL = cases(
    "sum",
    input_messages=[
        {
            "role": "user",
            "content": [
                {"type": "text", "value": "it's $HOME; rm -rf {EVAL_ID}"},
                {"type": "file", "value": "style.instructions.md"},
                {"type": "file", "value": "two words.txt"},
            ],
        }
    ],
)


def cli(template: str, **more: object) -> dict[str, object]:
    return {"name": "command", "provider": "cli", "commandTemplate": template, **more}


@pytest.fixture
def folder(tmp_path):
    files = {"style.instructions.md": "Be brief.", "two words.txt": "1, 2", "print.py": PRINTS_ARGUMENTS}
    return put(tmp_path, {f"evals/{name}": text for name, text in files.items()})


class TestCliTemplateExecution:
    @pytest.mark.spec("agentv", "Rendering and running a template")
    def test_render_and_execute_template(self, folder):
        template = (
            "python3 print.py {OUTPUT_FILE} {PROMPT} {GUIDELINES} {EVAL_ID} {ATTEMPT} {FILES}; echo noise >&2"
        )
        called = run_folder(folder, EVAL, cli(template, filesFormat="--file={path}", timeoutSeconds=20))
        assert called.code == 0, called.out
        output, prompt, guidelines, eval_id, attempt, file = json.loads(records()[0]["candidate_answer"])
        assert (eval_id, attempt, guidelines.count("Be brief.")) == ("sum", "0", 1)
        assert "it's $HOME; rm -rf {EVAL_ID}" in prompt and "Be brief." not in prompt
        assert file.startswith("--file=/") and file.endswith("/evals/two words.txt")
        assert not Path(output).exists()

    @pytest.mark.parametrize("cwd", [{}, {"cwd": "evals"}, {"cwd": "${{ WALK_NOT_SET }}"}])
    def test_it_works_in_the_eval_files_folder(self, folder, cwd):
        run_folder(folder, EVAL, cli("pwd; ls", **cwd))
        where, *listed = records()[0]["candidate_answer"].split("\n")
        assert where.endswith("/evals")
        assert {"style.instructions.md", "print.py", "two words.txt"} <= set(listed)

    def test_a_relative_folder_is_inside_the_uploaded_files(self, folder, tmp_path):
        put(folder, {"evals/tools/here.txt": "", "evals/work.yaml": EVAL})
        put(folder, {"targets.yaml": json.dumps({"targets": [cli("ls", cwd="tools")]})})
        archive = shutil.make_archive(str(tmp_path.parent / f"{tmp_path.name}-packed"), "zip", folder)
        called = call("run_scenarios", archive, "--now", "--json")
        assert called.code == 0, called.out
        assert records()[0]["candidate_answer"] == "here.txt\n"

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            ("echo no such model >&2; exit 4", "exit code 4: no such model."),
            ("echo -n > {OUTPUT_FILE}; echo too bad; exit 4", "exit code 4: too bad."),
            ("true {OUTPUT_FILE}", "wrote no answer"),
        ],
        ids=["stderr", "with an output file", "no answer"],
    )
    def test_errors_include_stderr_and_exit_code(self, folder, template, message):
        assert run_folder(folder, EVAL, cli(template)).code == 1
        (record,) = records()
        assert message in record["error"]
        assert record["score"] == 0

    @pytest.mark.parametrize("secret", ["sesame-open-wide", "sesame'open wide"])
    def test_verbose_keeps_the_command_as_it_was_run(self, folder, monkeypatch, secret):
        monkeypatch.setenv("WALK_SECRET", secret)
        target = cli("echo {PROMPT}; true", verbose=True, args=["--key", "${{ WALK_SECRET }}"])
        assert run_folder(folder, cases("sum"), target).code == 0
        kept = path_of(Artifact.objects.get(name="command").sha256).read_text()
        assert kept.startswith("cwd=/") and "/evals command=echo '" in kept
        assert "Do sum." in kept and "true '--key' '" in kept
        assert "sesame" not in kept

    def test_verbose_shows_the_command_that_failed(self, folder, monkeypatch):
        monkeypatch.setenv("WALK_SECRET", "sesame-open-wide")
        # Wherever the sentence is cut, it is cut within a masked word.
        target = cli("exit 4; true", verbose=True, args=["${{ WALK_SECRET }}"] * LONGEST_SHOWN)
        assert run_folder(folder, cases("sum"), target).code == 1
        error = Trial.objects.get().error
        assert "to see why. Command: cwd=/" in error
        assert "sesame" not in error

    def test_without_verbose_no_command_is_kept(self, folder):
        assert run_folder(folder, cases("sum"), cli("echo {PROMPT}")).code == 0
        assert not Artifact.objects.filter(name="command").exists()

    def test_a_command_that_takes_too_long_is_ended(self, folder):
        assert run_folder(folder, EVAL, cli("sleep 62.5", timeoutSeconds=0.5)).code == 1
        assert "timed out after 0.5 s" in Trial.objects.get().error

    @pytest.mark.spec("agentv", "One health check before the first request")
    def test_optional_health_check(self, folder, tmp_path):
        probed = tmp_path / "probed"
        probed.mkdir()
        health = {"type": "command", "commandTemplate": "echo probe >> log.txt", "cwd": str(probed)}
        called = run_folder(folder, cases("one", "two", "three"), cli("echo done", healthcheck=health))
        assert (called.code, the_run().passed) == (0, 3)
        assert (probed / "log.txt").read_text() == "probe\n"

    @pytest.mark.parametrize(
        "health",
        [
            {"type": "command", "commandTemplate": "echo asleep; exit 1", "timeoutSeconds": 5},
            {"type": "command", "command_template": "sleep 60", "timeout_seconds": 0.3},
            {"type": "http", "url": "http://127.0.0.1:9/", "timeoutSeconds": 2},
        ],
        ids=["a command that fails", "a command that takes too long", "an address where nobody listens"],
    )
    def test_a_failed_health_check_stops_before_any_request(self, folder, tmp_path, health):
        trace = tmp_path / "requests"
        trace.mkdir()
        target = cli("echo asked >> log.txt", healthcheck=health, cwd=str(trace))
        assert run_folder(folder, cases("one", "two"), target).code == 1
        run = the_run()
        assert (run.outcome, run.cancelled) == ("error", 2)
        assert "The health check of the target 'command' failed" in run.error
        assert list(trace.iterdir()) == []


def refused(folder, *lines: str) -> list[dict]:
    """Return the problems for which a target of these lines is refused."""
    put(folder, {"evals/work.yaml": EVAL})
    text = "targets:\n  - name: command\n    provider: cli\n" + "".join(f"    {line}\n" for line in lines)
    put(folder, {"targets.yaml": text})
    called = call("run_scenarios", str(folder), "--now", "--json")
    assert called.code == 2, called.out
    assert not Run.objects.exists()
    return called.document["problems"]


class TestCliTemplateConfiguration:
    @pytest.mark.parametrize(
        ("lines", "line", "word"),
        [
            (["cwd: /tmp"], 2, "command_template"),
            (["command_template: ''"], 4, "command_template"),
            (["command_template: x", "filesFormat: '{path}'", "timeoutSecond: 3"], 6, "timeoutSecond"),
        ],
        ids=["missing", "empty", "unsupported"],
    )
    @pytest.mark.spec("agentv", "Fields of a template")
    def test_required_template_fields(self, folder, lines, line, word):
        (problem,) = refused(folder, *lines)
        assert (problem["file"], problem["line"]) == ("targets.yaml", line)
        assert word in problem["where"] + problem["what"]
        assert problem["fix"]

    def test_optional_template_fields_are_accepted(self, folder):
        health = {"type": "command", "command_template": "true", "cwd": str(folder), "timeout_seconds": 9}
        more = {"files_format": "{path}", "cwd": str(folder), "timeout_seconds": 20, "verbose": True}
        assert run_folder(folder, EVAL, cli("echo done", healthcheck=health, **more)).code == 0

    @pytest.mark.spec("agentv", "Placeholders")
    def test_placeholder_substitution_rules(self, folder):
        (problem,) = refused(folder, "command_template: 'agent {PROMPT} {MODEL_NAME}'")
        assert "{MODEL_NAME}" in problem["what"] + problem["fix"]
        assert "{OUTPUT_FILE}" in problem["what"] + problem["fix"]

    @pytest.mark.parametrize(
        "health",
        [
            "{type: tcp, port: 80}",
            "{type: http}",
            "{type: command}",
            "{type: http, url: 'http://x/', command_template: true}",
            "{type: command, command_template: ''}",
            "{url: 'http://x/'}",
        ],
    )
    @pytest.mark.spec("agentv", "Fields of a health check")
    def test_health_check_schema(self, folder, health):
        problems = refused(folder, "command_template: x", f"healthcheck: {health}")
        assert {(problem["file"], problem["line"]) for problem in problems} == {("targets.yaml", 5)}
        assert all("healthcheck" in problem["where"] for problem in problems)
