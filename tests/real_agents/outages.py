"""Sessions of the real agents whose model's service fails before, amid and after their work."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from runs.targets.agents.opencode import DATA
from runs.targets.agents.session_agents import opencode_log
from runs.targets.agents.session_end import broken_by
from runs.targets.providers.base import Recording
from tests.real_agents.real import COMMANDS, LOOPBACK_ONLY, agent, invocation, playing
from tests.waiting import until

MOMENTS: Mapping[str, tuple[str, ...]] = {
    "before": (),
    "amid": (COMMANDS[3],),
    "after": (COMMANDS[3], "./taskmgr list"),
}
"""The commands that the agent has run when its service fails; after the last ones only its final words are missing."""
STATUSES = (401, 402, 403, 404, 408, 429, 500, 503, 529)
GONE = "gone"
FAULTS: tuple[str | int, ...] = (*STATUSES, "cut", GONE)
OWN = 400
"""A status that says that the agent asked something wrong."""
# fmt: off
ONE_RETRY: Mapping[str, Mapping[str, Any]] = {
    "codex": {"args": [word for kind in ("request", "stream") for word in ("-c", f"model_providers.evalhub.{kind}_max_retries=1")]},
    "claude_code": {"env": {**LOOPBACK_ONLY, "CLAUDE_CODE_MAX_RETRIES": "1"}},
    "opencode": {},
}
# fmt: on
"""Fields of targets that give up after one retry; opencode can't."""
IN_CI = 2
"""Faults of each agent and moment that are tried, unless all are asked for."""


def faults_to_play(kind: str, moment: str, *, every: bool) -> Sequence[str | int]:
    """Return every fault, or a few by chance, the same each time: a session that waits takes 20 seconds."""
    return FAULTS if every else Random(f"{kind} {moment}").sample(FAULTS, IN_CI)


LOGGED = ("stream", '"stream error"', "loop", "process", "evaluated")
"""Messages of opencode's log that specimens keep."""
WAITING_SECONDS = (20.0, 60.0)
"""opencode repeats most failed requests, and Codex waits for a network, until the time is up. A busy machine that
hasn't come to the failing request by then is given more."""


def play(kind: str, moment: str, fault: str | int, folder: Path) -> Recording:
    """Return the session of an agent whose service fails at a moment, for good; its files are in `folder`."""
    waits = (kind == "opencode" and fault not in (400, 401, 402, 403, 404)) or (kind, fault) == (
        "codex",
        GONE,
    )
    if not waits:
        return _play(kind, moment, fault, folder, 60.0)
    short, long = WAITING_SECONDS
    recording = _play(kind, moment, fault, folder, short)
    if broken_by(recording) is not None:
        return recording
    folder.rename(folder.with_name(f"{folder.name}-too-short"))
    return _play(kind, moment, fault, folder, long)


def _play(kind: str, moment: str, fault: str | int, folder: Path, seconds: float) -> Recording:
    folder.mkdir()
    done = MOMENTS[moment]
    commands = [{"command": command} for command in done]
    if fault == GONE and commands:
        # The server ends while the agent works.
        commands[-1] = {"command": f"{done[-1]}; sleep 1"}
    asked = invocation(folder, kind, timeout_seconds=seconds)
    with ExitStack() as stack:
        model = stack.enter_context(playing(*commands, {"fault": "cut" if fault == GONE else fault}))
        provider = agent(kind, model.url, **ONE_RETRY[kind])
        if fault != GONE:
            return provider.invoke(asked)
        found: list[Recording] = []
        if not commands:
            stack.close()
        session = threading.Thread(target=lambda: found.append(provider.invoke(asked)))
        session.start()
        if commands:
            until(lambda: len(model.seen) >= len(commands), 40)
            stack.close()
        session.join()
        return found[0]


def keep_specimen(folder: Path, name: str, recording: Recording, scratch: Path) -> None:
    """Write what a session printed, without the long lists that Claude Code begins with, and opencode's log."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [_shortened(line) for line in recording.raw.decode().splitlines()]
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if recording.service_failure.said:
        log = opencode_log(scratch / DATA).splitlines()
        kept = (line for line in log if any(f"message={word}" in line for word in LOGGED))
        (folder / f"{name}.log").write_text("".join(f"{line}\n" for line in kept))


def _shortened(line: str) -> str:
    event = json.loads(line)
    if event.get("subtype") != "init":
        return line
    return json.dumps({name: event[name] for name in ("type", "subtype", "claude_code_version")})
