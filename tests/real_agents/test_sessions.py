"""Whole sessions of codex, claude and opencode against a scripted model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluators.tool_use.calls import Call, pair_calls
from evaluators.transcripts import parse
from runs.sandbox.sandbox import Level
from runs.targets.definitions import define, read_targets, resolve_definition
from runs.targets.model_server.wire import read_conversation
from runs.targets.providers.base import Recording
from runs.targets.providers.registry import make_provider
from tests.real_agents.real import (
    AGENTS,
    ANSWER,
    CODES,
    COMMANDS,
    KEY,
    LOOPBACK_ONLY,
    Model,
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

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""References to keys in the documentation's targets."""


def waiting(kind: str, seconds: int) -> str:
    """A command that never ends, unlike every other; agents don't let `sleep` run."""
    return f"tail -s {seconds}.{list(AGENTS).index(kind)} -f taskmgr"


def documented_entry(kind: str) -> dict[str, Any]:
    """An agent's target in docs/providers.md."""
    text = (Path(__file__).parents[2] / "docs/providers.md").read_text()
    entries = next(
        read_targets(block.encode(), "t")
        for block in re.findall(r"```yaml\n(targets:.*?)```", text, re.DOTALL)
        if "provider: codex" in block
    )
    [documented] = [target.entry for target in entries if target.kind == kind]
    return documented


def check_commands(recording: Recording, commands: list[str], codes: list[int]) -> list[Call]:
    """Check that a session ran the script's commands and ended well; return its calls."""
    transcript = parse(recording.parser, recording.raw)
    found = [call for call in pair_calls(transcript.events) if call.event.command]
    assert [call.exit_code for call in found] == codes
    assert all(command in (call.event.command or "") for command, call in zip(commands, found, strict=True))
    assert (transcript.answer, recording.exit_code) == (ANSWER, 0)
    assert not transcript.problems
    assert recording.version
    assert recording.notes == ()
    return found


def tokens(recording: Recording) -> tuple[int, int]:
    usage = parse(recording.parser, recording.raw).usage
    assert usage is not None
    return usage.input, usage.output


def check_requests(model: Model, name: str) -> None:
    """Check that each request has the workspace's rules, the target's key and its model."""
    assert all("Rule 4711" in json.dumps(request.body) for request in model.seen)
    assert all(KEY in json.dumps(request.headers) for request in model.seen)
    assert {request.body["model"] for request in model.seen} == {name}


pytestmark = pytest.mark.parametrize("kind", AGENTS)


@pytest.mark.parametrize("level", [Level.BWRAP, Level.OFF])
def test_the_documented_target_does_the_script_and_no_more(tmp_path, monkeypatch, kind, level):
    """The documentation's target plays a script in the home of somebody with rules and tools of their own."""
    home = user_home(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    before = files_of(home)
    # evalhub's own data may lie in that home.
    place = home / ".local/share/evalhub"
    place.mkdir(parents=True)
    documented = documented_entry(kind)
    with playing(*turns(*COMMANDS, "ls ~")) as model:
        # Only the model service is another one, and the internet is out of reach.
        given = {**documented, "base_url": model.url, "env": LOOPBACK_ONLY}
        target = resolve_definition(define(given), dict.fromkeys(KEYS, KEY))
        recording = make_provider(target, on_agents_path(level)).invoke(invocation(place, kind))
    listed = check_commands(recording, [*COMMANDS, "ls ~"], [*CODES, 0])[-1]
    assert tokens(recording) == (800, 160)
    check_requests(model, documented["model"].rpartition("/")[2])
    assert "Rule 666" not in json.dumps([request.body for request in model.player.seen])
    assert "CLAUDE.md" not in json.dumps(listed.result.output)
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
    # Codex waits ten seconds for a command, and a busy machine starts opencode slowly.
    for seconds in (9.0, 60.0):
        folder = tmp_path / str(seconds)
        folder.mkdir()
        given = invocation(folder, kind, timeout_seconds=seconds)
        with playing(*turns("./taskmgr --help", waiting(kind, 62))) as model:
            recording = agent(kind, model.url).invoke(given)
        assert recording.timed_out
        if recording.raw.strip() and pair_calls(parse(recording.parser, recording.raw).events):
            break
    transcript = parse(recording.parser, recording.raw)
    assert "taskmgr --help" in (pair_calls(transcript.events)[0].event.command or "")
    assert nothing_left(waiting(kind, 62).replace(" ", "\0"))


def test_four_faults_in_one_session_are_survived(tmp_path, kind):
    steps = turns(*COMMANDS)
    for step, fault in zip(steps, (429, 500, "cut"), strict=False):
        step |= {"fault": fault, "retry_after_seconds": 0}
    # Agents show the model what it got wrong, so nonsense is a turn of its own.
    with playing(*steps[:3], {"fault": "nonsense"}, *steps[3:]) as model:
        recording = agent(kind, model.url).invoke(invocation(tmp_path, kind))
    called = [read_conversation(request.body).passed for request in model.seen]
    # opencode sometimes begins a command before it notices the cut; it ends it then, unless the command is faster, and
    # begins it again.
    again = kind == "opencode" and 3 not in called
    cut = pair_calls(parse(recording.parser, recording.raw).events)[2].exit_code
    assert not again or cut in (None, CODES[2])
    check_commands(
        recording,
        [*COMMANDS[:2], *COMMANDS[2:3] * again, *COMMANDS[2:]],
        [*CODES[:2], *[cut] * again, *CODES[2:]],
    )
    # Claude Code counts what came before the cut, if it got that far; opencode may leave out the step that was cut.
    other = {"claude_code": [(900, 161)], "opencode": [(700, 140)]}
    assert tokens(recording) in [(800, 160), *other.get(kind, [])]
    check_requests(model, "scripted")
    # Each request has a call more than the last, but as many after a fault; the fourth call is the nonsense.
    assert called == [0, 0, 1, 1, 2, 2, *([] if again else [3]), 4, 5, 6, 7]


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
