"""Trying a target with a prompt, by a worker in this process."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runs.models import Run, TargetTry, Trial
from runs.workers import jobs
from tests.builders import make_target
from tests.runs.jobs import do_job
from tests.web.screen import parse
from tests.web.targets.pages import ADDRESS, actions

pytestmark = pytest.mark.one_database

NEW = f"{ADDRESS}new/"


def tried(client, definition: str, **more) -> dict:
    """Return the result of a try, requested on the page and done by a worker."""
    given = {"definition": definition, "try": "yes", "prompt": "Say hi", **more}
    response = client.post(NEW, given)
    row = TargetTry.objects.get()
    assert response.url == f"{NEW}?try={row.pk}#try"
    do_job(row)
    row.refresh_from_db()
    return row.result


def cli(command: str, **more) -> str:
    return json.dumps({"name": "mine", "provider": "cli", "command_template": command, **more})


def test_a_try_shows_what_was_recognised_and_stores_no_trial(signed_in):
    client = signed_in()
    event = json.dumps({"type": "tool_call", "name": "bash", "command": "todo list"})
    command = f"echo {{PROMPT}}; pwd; echo '{event}' > {{EVENTS_FILE}}; exit 3"
    result = tried(client, cli(command))
    assert (result["call_count"], result["exit_code"], result["source"]) == (1, 3, "events")
    assert result["output"].startswith("Say hi\n") and result["answer"].startswith("Say hi\n")
    page = parse(client.get(f"{ADDRESS}tries/{TargetTry.objects.get().pk}/"))
    assert "Say hi" in page and "1: bash" in page
    assert not (Run.objects.exists() or Trial.objects.exists())
    assert actions() == ["target.try"]


def test_the_page_without_javascript_keeps_what_was_typed(signed_in):
    client = signed_in()
    given = {"kind": "mock", "name": "new", "response": "hello", "try": "yes", "prompt": "Go"}
    page = parse(client.get(client.post(NEW, given).url))
    assert page.field("Targets file entry").value == "name: new\nprovider: mock\nresponse: hello\n"
    assert page.field("Prompt to try").value == "Go"
    assert "Waiting for a worker" in page


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        (cli("no-such-agent {PROMPT}"), "There is no program 'no-such-agent' inside the sandbox."),
        (cli("echo hi", env={"A": "${{ NOT_SET_HERE }}"}), "needs the variable NOT_SET_HERE"),
        (cli("sleep 30", timeout_seconds=0.3), None),
    ],
    ids=["program", "variable", "time"],
)
def test_a_failed_try_says_why(signed_in, definition, error):
    result = tried(signed_in(), definition)
    assert error in result["error"] if error else result["timed_out"]


def test_a_stream_in_plain_output_is_recognised(signed_in):
    lines = [
        {
            "type": "item.completed",
            "item": {"id": "1", "type": "command_execution", "command": "ls", "exit_code": 0},
        },
        {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    ]
    result = tried(signed_in(), cli("echo '" + "\n".join(map(json.dumps, lines)) + "'"))
    assert any("looks like the format `codex` with 1 tool call" in note for note in result["notes"])


def test_output_is_bounded_masked_and_storable(signed_in, monkeypatch, settings):
    monkeypatch.setenv("OUR_TOKEN", "hunter2hunter2")
    settings.ENV_ALLOW = ["*:OUR_TOKEN"]
    definition = cli("echo $T; head -c 100000 /dev/zero", env={"T": "${{ OUR_TOKEN }}"})
    output = tried(signed_in(), definition)["output"]
    assert "hunter2" not in output
    assert len(output) < 21_000 and "characters …" in output


def test_an_invalid_definition_is_not_tried(signed_in):
    given = {"definition": "name: x\nprovider: mok\n", "try": "yes"}
    response = signed_in().post(NEW, given, headers={"HX-Request": "true"})
    assert response.status_code == 422
    assert not TargetTry.objects.exists()


def test_a_try_without_an_answer_says_so_and_is_removed_later(signed_in, project):
    client = signed_in()
    target = make_target(project)
    given = {"definition": "name: local\nprovider: mock\n", "try": "yes"}
    client.post(f"{ADDRESS}{target.pk}/", given)
    row = TargetTry.objects.get()
    TargetTry.objects.update(created=row.created - timedelta(minutes=6))
    assert "No worker answered." in parse(client.get(f"{ADDRESS}tries/{row.pk}/"))
    TargetTry.objects.update(created=row.created - timedelta(hours=2))
    jobs.remove_expired()
    assert not TargetTry.objects.exists()
