"""Sessions of the real agents in which the tool is called in every way, with the tool's calls recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluators.tool_use.recorded_commands import RecordedCall, read_call_record
from runs.sandbox.recording.record import RecordedTool, ToolRecord, list_program_places
from runs.sandbox.sandbox import HOME, SCRATCH, WORKSPACE, Level
from tests.real_agents.real import LOOPBACK_ONLY, PROGRAMS, agent, invocation, playing

DONE = {"text": "Done."}
CHECK = "./taskmgr create by-script\n./taskmgr list\n"
MAKEFILE = "test:\n\t@./taskmgr create by-make\n\t@./taskmgr lst\n"
LAST = "./taskmgr lst; ./taskmgr create by-sub"
NOTIFY = 'notify=["/workspace/taskmgr", "hook-notify"]'
HOOK = 'hooks.PreToolUse=[{hooks=[{type="command", command="./taskmgr hook-PreToolUse"}]}]'
WAIT = "until grep -q by-sub tasks.txt; do sleep 0.1; done"
SUB = "Sub-task 4711: list the tasks."
# fmt: off
SPAWN: Mapping[str, Mapping[str, Any]] = {
    "claude_code": {"tool": "Agent", "arguments": {"description": "List", "prompt": SUB, "subagent_type": "general-purpose"}},
    "opencode": {"tool": "task", "arguments": {"description": "List", "prompt": SUB, "subagent_type": "general"}},
    "codex": {"tool": "multi_agent_v1/spawn_agent", "arguments": {"message": SUB}},
}
# fmt: on
HOOKS: Mapping[str, Mapping[str, str]] = {
    "claude_code": {
        ".claude/settings.json": json.dumps(
            {
                "hooks": {
                    name: [
                        {
                            "matcher": "Bash",
                            "hooks": [{"type": "command", "command": f"./taskmgr hook-{name}"}],
                        }
                    ]
                    for name in ("PreToolUse", "PostToolUse")
                }
            }
        )
    },
    "opencode": {
        ".opencode/plugin/hook.js": "export const Hook = async ({ $ }) => ({\n"
        '  "tool.execute.before": async () => { await $`./taskmgr hook-before`.nothrow().quiet() },\n})\n'
    },
    "codex": {},
}


@dataclass(frozen=True)
class Case:
    """What the model does; `tool` is recorded."""

    turns: tuple[Mapping[str, Any], ...]
    tool: str = "./taskmgr"
    files: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    sessions: tuple[Mapping[str, Any], ...] = ()


def commands(*lines: str, **more: Any) -> Case:
    return Case(tuple({"command": line} for line in lines), **more)


def cases(kind: str) -> dict[str, Case]:
    """Return the sessions of an agent by name."""
    notify = (
        {"args": ["--dangerously-bypass-hook-trust", "-c", NOTIFY, "-c", HOOK]} if kind == "codex" else {}
    )
    background = "./taskmgr list & ./taskmgr lst; wait"
    in_background: Mapping[str, Any] = {"command": background}
    if kind == "claude_code":
        in_background = {
            "tool": "Bash",
            "arguments": {"command": "./taskmgr list", "run_in_background": True},
        }
    return {
        "own": commands("./taskmgr list", "./taskmgr create a && ./taskmgr creat b"),
        "quoted": commands('''./taskmgr create "it's a \\"task\\""'''),
        "pipe": commands("./taskmgr lst | cat"),
        "loop": commands("for i in a b c; do ./taskmgr create $i; done"),
        "launchers": commands("echo a b | xargs -n1 ./taskmgr create; timeout 5 env A=1 ./taskmgr list"),
        "inline": commands("python3 -c \"import subprocess; subprocess.run(['./taskmgr', 'list'])\""),
        "make": commands("make test", files={"Makefile": MAKEFILE}),
        "script": commands("sh check.sh", files={"check.sh": CHECK}),
        "written": commands("printf './taskmgr create mine\\n' > mine.sh; sh mine.sh"),
        "background": Case((in_background, {"command": "true"})),
        "hook": commands("./taskmgr create a", files=HOOKS[kind], fields=notify),
        "git": commands("git status --short", "git log | cat", tool="git"),
        "subagent": Case((SPAWN[kind], {"command": WAIT}), sessions=({"when": SUB, "turns": [{"command": LAST}, DONE]},)),
    }  # fmt: skip


def one_after_the_other(found: Sequence[Case]) -> Case:
    """Return one session of all turns and files: an agent takes seconds to start."""
    files = {name: text for case in found for name, text in case.files.items()}
    return Case(tuple(turn for case in found for turn in case.turns), files=files)


def play(kind: str, case: Case, folder: Path) -> tuple[bytes, tuple[RecordedCall, ...]]:
    """Run a session and return the record, and its calls."""
    asked = invocation(folder, kind)
    for name, text in case.files.items():
        (asked.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (asked.workspace / name).write_text(text)
    if case.tool == "git":
        subprocess.run(
            ["git", "init", "-q", str(asked.workspace)], check=True, env={**os.environ, "HOME": "/"}
        )
    name, path = case.tool.rsplit("/", 1)[-1], os.environ["PATH"]
    tool = RecordedTool(name, list_program_places(case.tool, WORKSPACE, path), by_name="/" not in case.tool)
    record = ToolRecord(tool, asked.workspace, WORKSPACE, (WORKSPACE, SCRATCH, "/tmp", HOME))
    sessions = [*case.sessions, {"turns": [*case.turns, DONE]}]
    with playing(sessions=[dict(each) for each in sessions]) as model:
        fields = {"env": LOOPBACK_ONLY, **case.fields}
        agent(kind, model.url, Level.BWRAP, **fields).invoke(replace(asked, record=record))
    assert record.content is not None
    return record.content, read_call_record(record.content)


MOST_IN_SPECIMEN = 10


def keep_specimen(folder: Path, name: str, record: bytes) -> None:
    """Write a record as a specimen; of the agents' own many calls of git, the first."""
    lines = record.decode().splitlines()
    kept = [
        line
        for n, line in enumerate(lines)
        if n < MOST_IN_SPECIMEN or '"-c", "git' in line or "eval 'git" in line
    ]
    text = "".join(f"{line}\n" for line in kept)
    for path, shown in ((PROGRAMS.parents[1], "/opt/agents"), (Path(sys.base_prefix), "/usr/local")):
        text = text.replace(str(path.resolve()), shown)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text(text)
