from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from runs.errors import ProviderError
from runs.sandbox.sandbox import Level
from runs.targets.agents.vscode import Vscode
from runs.targets.providers.base import Batching, CanBatch
from tests.runs.targets.providers.agents import FILES, agent, beside, invocation

pytestmark = pytest.mark.one_database


def code(level: Level | None = None, *, kind: str = "vscode", does: str = "", **fields: Any) -> Vscode:
    given = {
        "executable": None,
        "vscode_cmd": str(FILES / "agents/code"),
        "env": {"FAKE_CODE": does},
        **fields,
    }
    provider = agent(kind, "code", level, **given)
    assert isinstance(provider, Vscode)
    return provider


def calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text().splitlines()


@pytest.mark.parametrize("level", list(Level))
def test_it_works(tmp_path, level):
    recording = code(level).invoke(invocation(tmp_path))
    assert recording.answer == "Done:\nImplement it.\n"
    assert (recording.parser, recording.exit_code) == ("plain_text", 0)


def test_the_request_has_a_block_of_what_is_to_be_read_first(tmp_path):
    rules, code_file = beside(tmp_path, "a.instructions.md"), beside(tmp_path, "m.py")
    recording = code().invoke(invocation(tmp_path, guideline_files=(rules,), files=(code_file,)))
    request = recording.logs["request"].decode()
    guideline, attachment = f"* [a.instructions.md](file://{rules})", f"* [m.py](file://{code_file})"
    order = ["The guideline files are:", guideline, "The attachment files are:", attachment]
    order += ["missing-file <name>", "[[ ## user_query ## ]]", "Implement it.", "_res.tmp.md", "_res.md"]
    places = [request.index(part) for part in order]
    assert places == sorted(places)


def test_the_workspace_is_opened_and_the_chat_gets_the_files(tmp_path):
    file = beside(tmp_path, "m.py")
    code(Level.OFF, does="silent", wait=False, args=["--profile", "eval"]).invoke(
        invocation(tmp_path, files=(file,))
    )
    opened, chat = calls(tmp_path / "workspace")
    request = next((tmp_path / "scratch/subagent/messages").glob("*_req.md"))
    assert opened == f"--profile eval {request.with_suffix('.code-workspace')}"
    attached = f"-a {file} -a {request}"
    assert chat == f"--profile eval -r chat -m agent {attached} Follow the instructions in {request.name}"


def workspace_file(folder: Path) -> dict[str, Any]:
    return json.loads(next(folder.glob("scratch/subagent/messages/*.code-workspace")).read_text())


def test_a_workspace_template_gives_settings_and_further_folders(tmp_path):
    template = tmp_path / "team.code-workspace"
    template.write_text('{"folders": [{"path": "shared"}], "settings": {"chat.agent": true}}')
    code(Level.OFF, workspace_template=str(template)).invoke(invocation(tmp_path))
    assert workspace_file(tmp_path) == {
        "folders": [{"path": str(tmp_path / "workspace")}, {"path": str(tmp_path / "shared")}],
        "settings": {"chat.agent": True},
    }


def test_a_template_that_is_not_json_is_reported(tmp_path):
    (tmp_path / "x").write_text("{")
    with pytest.raises(ProviderError, match="workspace_template") as caught:
        code(workspace_template=str(tmp_path / "x")).invoke(invocation(tmp_path))
    assert caught.value.kind == "configuration"


def test_requests_and_answers_are_in_the_targets_folder(tmp_path):
    recording = code(subagent_root=str(tmp_path / "agents")).invoke(invocation(tmp_path))
    (request,) = (tmp_path / "agents/messages").glob("*_req.md")
    assert recording.logs["request"] == request.read_bytes()
    assert recording.answer == "Done:\nImplement it.\n"


def test_a_dry_run_describes_itself_without_text(tmp_path):
    dry = code(Level.OFF, dry_run=True, vscode_cmd="/no/such/code")
    assert dry.check().available
    recording = dry.invoke(invocation(tmp_path))
    description = json.loads(recording.raw)
    assert (recording.answer, description["dry_run"], len(description["commands"])) == ("", True, 2)
    assert Path(description["request_file"]).is_file()
    assert not (tmp_path / "workspace/calls.txt").exists()


def test_it_need_not_wait_for_the_answer(tmp_path):
    recording = code(does="silent", wait=False).invoke(invocation(tmp_path))
    assert recording.answer == ""
    assert json.loads(recording.raw)["dry_run"] is False
    assert len(calls(tmp_path / "workspace")) == 2


@pytest.mark.slow
def test_an_answer_that_does_not_come_is_a_timeout(tmp_path):
    silent = code(does="silent", timeout_seconds=0.8)
    recording = silent.invoke(invocation(tmp_path))
    assert (recording.timed_out, recording.seconds) == (True, 0.8)
    with pytest.raises(ProviderError, match=r"no answer within 0\.8 s") as caught:
        silent.invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "timeout"


def test_it_stops_waiting_when_it_is_cancelled(tmp_path):
    began = time.monotonic()
    given = invocation(tmp_path, cancelled=lambda: time.monotonic() - began > 1, timeout_seconds=60.0)
    assert code(does="silent").invoke(given).cancelled
    assert time.monotonic() - began < 20


def test_an_editor_that_fails_is_an_error_also_in_a_workspace(tmp_path):
    with pytest.raises(ProviderError, match="did not take the request: no display"):
        code(does="broken").invoke(invocation(tmp_path))


def test_an_answer_that_leads_elsewhere_is_refused(tmp_path):
    messages = tmp_path / "scratch/subagent/messages"
    waiting = code(does="silent", timeout_seconds=20)

    def planted() -> bool:
        for request in messages.glob("*_req.md"):
            answer = request.with_name(request.name.replace("_req", "_res"))
            answer.is_symlink() or answer.symlink_to("/etc/passwd")
        return False

    with pytest.raises(ProviderError, match="cannot be read"):
        waiting.invoke(invocation(tmp_path, cancelled=planted))


@pytest.mark.parametrize(("kind", "program"), [("vscode", "code"), ("vscode-insiders", "code-insiders")])
def test_each_edition_has_its_own_command(kind, program):
    missing = agent(kind, "code", executable=None)
    availability = missing.check()
    assert availability.available or f"'{program}'" in availability.sentence


def test_it_reports_the_editors_version():
    assert code().check().version == "1.107.0"


def batching(provider: Vscode) -> Batching:
    assert isinstance(provider, CanBatch)
    assert not isinstance(provider.batching, str)
    return provider.batching


def three(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    return {name: invocation(tmp_path, prompt=f"Question {name}", **changes) for name in "abc"}


@pytest.mark.parametrize("level", [Level.BWRAP, Level.OFF])
def test_a_batch_is_one_chat_whose_answers_find_their_requests(tmp_path, level):
    batches = batching(code(level, subagent_root=str(tmp_path / "agents")))
    id = batches.submit_batch(three(tmp_path, files=(beside(tmp_path, "m.py"),)))
    assert batches.poll_batch(id).ended
    fetched = batches.fetch_batch(id)
    assert {name: each.recording and each.recording.answer for name, each in fetched.items()} == {
        name: f"Done:\nQuestion {name}\n" for name in "abc"
    }
    assert len(calls(tmp_path / "agents" / id / "workspace")) == 2


@pytest.mark.slow
def test_a_batch_times_out_and_lists_what_is_missing(tmp_path):
    batches = batching(code(Level.OFF, does="half", subagent_root=str(tmp_path / "agents")))
    id = batches.submit_batch(three(tmp_path, timeout_seconds=2.0))
    assert not batches.poll_batch(id).ended
    time.sleep(2.0)
    assert batches.poll_batch(id).ended
    answers = list(batches.fetch_batch(id).values())
    assert [each.error for each in answers].count("The agent gave no answer in time.") == 2


def test_a_cancelled_or_lost_batch_is_reported(tmp_path):
    batches = batching(code(Level.OFF, does="silent", subagent_root=str(tmp_path / "agents")))
    id = batches.submit_batch(three(tmp_path))
    batches.cancel_batch(id)
    assert "cancelled" in batches.poll_batch(id).failed
    with pytest.raises(ProviderError, match="Start the run again"):
        batches.poll_batch("batch-lost")
