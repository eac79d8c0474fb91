"""Provider Integration of the AgentV specification: each provider out of a targets file, on real HTTP or a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.models import Trial
from runs.sandbox.worker_settings import containment
from tests.agentv.eval_folder import cases, put, records, run_folder, the_run
from tests.model_server import Answer, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

AGENTS = Path(__file__).parents[1] / "files" / "agents"
KEY = "sk-of-the-walk-0123456789"


@pytest.fixture
def models(monkeypatch):
    with serving() as server:
        monkeypatch.setenv("WALK_KEY", KEY)
        monkeypatch.setenv("WALK_ADDRESS", server.url)
        monkeypatch.setenv("WALK_MODEL", "gpt-4o-mini")
        server.script.answer = lambda prompt: Answer(f"Answered: {prompt}")
        yield server


def answered(called) -> str:
    assert called.code == 0, called.err + called.out
    (record,) = records()
    return record["candidate_answer"]


@pytest.mark.parametrize("kind", ["azure", "azure-openai"])
@pytest.mark.spec("agentv", "Azure OpenAI")
def test_azure_openai_provider(models, tmp_path, kind):
    target = {
        "name": "azure",
        "provider": kind,
        "resourceName": "${{ WALK_ADDRESS }}",
        "deploymentName": "${{ WALK_MODEL }}",
        "apiKey": "${{ WALK_KEY }}",
        "temperature": 0.2,
        "maxOutputTokens": 64,
        "maxRetries": 0,
    }
    assert answered(run_folder(tmp_path, cases("sum"), target)) == "Answered: Do sum."
    (seen,) = models.script.seen
    assert seen.path == "/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-01-preview"
    assert (seen.headers["api-key"], seen.body["temperature"], seen.body["max_tokens"]) == (KEY, 0.2, 64)


@pytest.mark.spec("agentv", "Anthropic")
def test_anthropic_provider(models, tmp_path):
    target = {
        "name": "claude",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "api_key": "${{ WALK_KEY }}",
        "base_url": models.url,
        "thinkingBudget": 1024,
        "max_output_tokens": 2048,
    }
    assert answered(run_folder(tmp_path, cases("sum"), target)) == "Answered: Do sum."
    (seen,) = models.script.seen
    assert (seen.path, seen.headers["x-api-key"]) == ("/v1/messages", KEY)
    assert seen.body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert (seen.body["model"], seen.body["max_tokens"]) == ("claude-sonnet-4-5", 2048)


@pytest.mark.parametrize("kind", ["gemini", "google"])
@pytest.mark.spec("agentv", "Gemini")
def test_google_gemini_provider(models, tmp_path, kind):
    target = {
        "name": "gemini",
        "provider": kind,
        "apiKey": "${{ WALK_KEY }}",
        "base_url": models.url,
        "temperature": 0.5,
        "maxOutputTokens": 32,
    }
    assert answered(run_folder(tmp_path, cases("sum"), target)) == "Answered: Do sum."
    (seen,) = models.script.seen
    assert seen.path.endswith("/models/gemini-2.5-flash:generateContent")
    assert seen.headers["x-goog-api-key"] == KEY
    wanted = seen.body["generationConfig"]
    assert (wanted["temperature"], wanted["max_output_tokens"]) == (0.5, 32)


def with_files(*names: str) -> str:
    parts = [{"type": "file", "value": name} for name in names]
    content = [{"type": "text", "value": "Mend it."}, *parts]
    return cases("mend", input_messages=[{"role": "user", "content": content}])


@pytest.fixture
def files(tmp_path, settings):
    settings.SANDBOX_READ = [str(AGENTS.parent)]
    containment.cache_clear()
    put(tmp_path, {"evals/house.instructions.md": "Be brief.", "evals/broken.py": "1 +"})
    yield with_files("house.instructions.md", "broken.py")
    containment.cache_clear()


@pytest.mark.parametrize("kind", ["vscode", "vscode-insiders"])
@pytest.mark.spec("agentv", "VS Code")
def test_vs_code_provider(files, tmp_path, kind):
    target = {"name": "editor", "provider": kind, "vscode_cmd": str(AGENTS / "code"), "timeout_seconds": 20}
    assert answered(run_folder(tmp_path, files, target)).startswith("Done:\nMend it.")


def test_vs_code_provider_reports_a_dry_run_without_text(files, tmp_path):
    target = {"name": "editor", "provider": "vscode", "vscode_cmd": "/usr/bin/no-such-code", "dryRun": True}
    assert answered(run_folder(tmp_path, files, target)) == ""
    assert Trial.objects.get().error == ""


@pytest.mark.spec("agentv", "Codex")
def test_codex_cli_provider(files, tmp_path):
    # The program refuses every command line but the specified one.
    target = {"name": "codex", "provider": "codex", "executable": str(AGENTS / "codex"), "args": ["-s", "x"]}
    assert answered(run_folder(tmp_path, files, target)) == "Created the task and listed it."
    assert set(Trial.objects.get().artifacts.values_list("name", flat=True)) >= {"transcript", "log"}


def test_codex_failures_show_both_outputs_and_the_log(files, tmp_path, monkeypatch):
    monkeypatch.setenv("WALK_SECRET", "sesame-open-wide")
    env = {"FAKE_CODEX": "fail", "FAKE_SECRET": "${{ WALK_SECRET }}"}
    target = {"name": "codex", "provider": "codex", "executable": str(AGENTS / "codex"), "env": env}
    target["api_key"] = "${{ WALK_SECRET }}"
    assert run_folder(tmp_path, files, {**target, "log_dir": str(tmp_path / "logs")}).code == 1
    error = Trial.objects.get().error
    assert "quota exceeded: [REDACTED]" in error and "thread.started" in error
    assert f"its log: {tmp_path}/logs/" in error


@pytest.mark.parametrize("delay", [{}, {"delayMs": 60}, {"delayMinMs": 50, "delayMaxMs": 70}])
@pytest.mark.spec("agentv", "Mock")
def test_mock_provider_for_dry_run(tmp_path, delay):
    target = {"name": "canned", "provider": "mock", "response": "As ever.", **delay}
    assert answered(run_folder(tmp_path, cases("sum"), target)) == "As ever."
    seconds = Trial.objects.get().seconds
    assert seconds >= (0.05 if delay else 0)
    assert the_run().fingerprint["target"] == "canned"
