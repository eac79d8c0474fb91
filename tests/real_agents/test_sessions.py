"""Whole sessions of codex, claude and opencode against a scripted model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluators.calls import calls
from evaluators.transcripts import parse
from runs.containment.sandbox import Level
from runs.providers import make_provider
from runs.targets.definitions import define, read_targets, resolve
from tests.real_agents.real import (
    AGENTS,
    ANSWER,
    CODES,
    COMMANDS,
    KEY,
    Watched,
    agent,
    files_of,
    invocation,
    on_agents_path,
    playing,
    turns,
    user_home,
)
from tests.runs.processes import nothing_left


def waiting(kind: str, seconds: int) -> str:
    """A command that never ends, unlike every other; agents don't let `sleep` run."""
    return f"tail -s {seconds}.{list(AGENTS).index(kind)} -f taskmgr"


pytestmark = pytest.mark.parametrize("kind", AGENTS)


def documented(kind: str) -> dict[str, Any]:
    """Return the target of an agent in the documents."""
    text = (Path(__file__).parents[2] / "docs/providers.md").read_text()
    entries = next(
        read_targets(block.encode(), "t")
        for block in re.findall(r"```yaml\n(targets:.*?)```", text, re.DOTALL)
        if "provider: codex" in block
    )
    [entry] = [target.entry for target in entries if target.kind == kind]
    return entry


def test_the_documented_target_records_what_happened(tmp_path, kind):
    entry, keys = documented(kind), dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), KEY)
    with playing(*turns(*COMMANDS)) as model:
        # Only the model service is another one.
        target = resolve(define({**entry, "base_url": model.url}), keys)
        recording = make_provider(target, on_agents_path()).invoke(invocation(tmp_path, kind))
    transcript = parse(recording.parser, recording.raw)
    found = [call for call in calls(transcript.events) if call.event.command]
    assert [call.exit_code for call in found] == CODES
    assert all(command in (call.event.command or "") for command, call in zip(COMMANDS, found, strict=True))
    assert (transcript.answer, recording.exit_code) == (ANSWER, 0)
    assert transcript.usage is not None
    assert (transcript.usage.input, transcript.usage.output) == (700, 140)
    assert not transcript.problems
    assert recording.version
    assert recording.notes == ()
    assert all("Rule 4711" in json.dumps(request.body) for request in model.seen)
    assert all(KEY in json.dumps(request.headers) for request in model.seen)
    assert {request.body["model"] for request in model.seen} == {entry["model"].rpartition("/")[2]}


@pytest.mark.parametrize("level", [Level.BWRAP, Level.OFF])
def test_the_user_s_own_rules_and_files_stay_out(tmp_path, monkeypatch, kind, level):
    home = user_home(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    before = files_of(home)
    # evalhub's own data may lie in that home.
    place = home / ".local/share/evalhub"
    place.mkdir(parents=True)
    with playing(*turns("ls ~")) as model:
        recording = agent(kind, model.url, level).invoke(invocation(place, kind))
    assert recording.exit_code == 0
    assert model.seen
    assert "Rule 666" not in json.dumps([request.body for request in model.player.seen])
    assert "Rule 4711" in json.dumps(model.seen[0].body)
    assert {name: files_of(home).get(name) for name in before} == before
    added = {path.relative_to(home).parts[0] for path in home.rglob("*")} - {
        Path(name).parts[0] for name in before
    }
    assert added == {".local"}


def test_calls_show_while_it_works_and_cancelling_ends_it(tmp_path, kind):
    # A short call may come and go between two looks; opencode reports a call only when it has ended.
    watched = Watched("taskmgr --help" if kind == "opencode" else "tail -s 61")
    given = invocation(
        tmp_path, kind, watch=lambda look: watched.looks.append(look), cancelled=watched.cancelled
    )
    with playing(*turns("./taskmgr --help", waiting(kind, 61))) as model:
        recording = agent(kind, model.url).invoke(given)
    assert recording.cancelled
    assert nothing_left(waiting(kind, 61).replace(" ", "\0"))


def test_the_time_limit_leaves_a_partial_transcript(tmp_path, kind):
    # opencode starts slowly on a busy machine, and Codex waits ten seconds for a command.
    given = invocation(tmp_path, kind, timeout_seconds=60.0 if kind == "opencode" else 9.0)
    with playing(*turns("./taskmgr --help", waiting(kind, 62))) as model:
        recording = agent(kind, model.url).invoke(given)
    transcript = parse(recording.parser, recording.raw)
    assert recording.timed_out
    assert "taskmgr --help" in (calls(transcript.events)[0].event.command or "")
    assert nothing_left(waiting(kind, 62).replace(" ", "\0"))


def test_faults_of_the_service_are_survived(tmp_path, kind):
    repeated = [429, 500, "cut"]
    steps = [
        {"command": command, "fault": fault, "retry_after_seconds": 0}
        for command, fault in zip(COMMANDS, [*repeated, "nonsense"], strict=False)
    ]
    given = invocation(tmp_path, kind, timeout_seconds=120.0)
    with playing(*steps, {"text": ANSWER}) as model:
        recording = agent(kind, model.url).invoke(given)
    transcript = parse(recording.parser, recording.raw)
    ran = [call.exit_code for call in calls(transcript.events) if call.event.command]
    # An agent asks again after a fault, but tells the model of nonsense, which then answers.
    assert (ran, transcript.answer) == (CODES[: len(repeated)], ANSWER)
    assert len(model.seen) == 2 * len(repeated) + 2


def test_a_key_that_is_refused_is_in_the_transcript(tmp_path, kind):
    with playing({"fault": 401}) as model:
        recording = agent(kind, model.url).invoke(invocation(tmp_path, kind))
    transcript = parse(recording.parser, recording.raw)
    assert recording.exit_code != 0
    assert "401" in " ".join(event.text or "" for event in transcript.events)


def test_the_agent_is_checked_with_its_version(kind):
    availability = agent(kind, "http://127.0.0.1:9/v1").check()
    assert availability.available
    assert availability.version
