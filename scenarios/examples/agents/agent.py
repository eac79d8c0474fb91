#!/usr/bin/env python3
"""A scripted agent: no model, but a real process that really runs the tool.

It does what its guidance says, word for word, and so makes the mistakes that the guidance leads to.
It loads a skill whose name has a word of the task. For each step of the task it takes the command that AGENTS.md or
the skill gives. Where that fails it tries again
if AGENTS.md says so, reads `--help`, and falls back to what it happens to know. What it did is written
as structured events, one JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

RECIPE = re.compile(r"^- (?P<intent>[^:`]+): `(?P<command>[^`]+)`", re.MULTILINE)
STEP = re.compile(r"^- (?P<step>.+)$", re.MULTILINE)
QUOTED = re.compile(r"'([^']*)'")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
LONGEST_OUTPUT = 4000


@dataclass(frozen=True)
class Recipe:
    intent: frozenset[str]
    command: str

    def fits(self, step: str) -> bool:
        return self.intent <= words(step)

    def fill(self, values: list[str]) -> str:
        """Put the step's quoted values where the recipe has capital letters, in order."""
        left = iter(values)
        return PLACEHOLDER.sub(lambda match: shlex.quote(next(left, match.group())), self.command)


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", QUOTED.sub(" ", text).lower()))


def recipes(text: str) -> list[Recipe]:
    """Read lines such as "- create a branch: `git switch -c NAME`"."""
    return [Recipe(words(match["intent"]), match["command"]) for match in RECIPE.finditer(text)]


def find_skills(workspace: Path, prompt: str) -> list[Path]:
    """Return the SKILL.md of each skill whose name has a word of the task, as an agent goes by names and descriptions."""
    files = sorted(workspace.glob(".agents/skills/*/SKILL.md"))
    return [file for file in files if set(file.parent.name.split("-")) & words(prompt)]


def best(known: list[Recipe], step: str) -> Recipe | None:
    fitting = [recipe for recipe in known if recipe.fits(step)]
    return max(fitting, key=lambda recipe: len(recipe.intent), default=None)


class Agent:
    def __init__(self, workspace: Path, events: Path, guidance: str, knowledge: str) -> None:
        self.workspace = workspace
        self.events = events.open("a", encoding="utf-8")
        self.guidance = recipes(guidance)
        self.knowledge = recipes(knowledge)
        self.tries_again = "run it again" in guidance
        self.calls = 0

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.write({"event": "message", "role": "assistant", "text": text})

    def write(self, event: dict[str, object]) -> None:
        self.events.write(json.dumps({"ts": round(time.time(), 3), **event}) + "\n")
        self.events.flush()

    def run(self, command: str) -> int:
        self.calls += 1
        name = f"call-{self.calls}"
        self.write({"event": "tool_call", "id": name, "tool": "bash", "command": command})
        began = time.monotonic()
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        output = (done.stdout + done.stderr)[:LONGEST_OUTPUT]
        print(f"$ {command}\n{output}[exit code {done.returncode}]", flush=True)
        milliseconds = round(1000 * (time.monotonic() - began))
        self.write(
            {
                "event": "tool_result",
                "id": name,
                "exit_code": done.returncode,
                "output": output,
                "duration_ms": milliseconds,
            }
        )
        return done.returncode

    def load(self, skill: Path) -> None:
        """Read a skill, with a command that shows in the transcript."""
        path = skill.relative_to(self.workspace)
        if self.run(f"cat {shlex.quote(path.as_posix())}") == 0:
            self.guidance += recipes(skill.read_text(encoding="utf-8"))

    def carry_out(self, step: str) -> bool:
        """Do one step; return whether a command for it succeeded."""
        values = QUOTED.findall(step)
        guided, known = best(self.guidance, step), best(self.knowledge, step)
        if guided is not None:
            command = guided.fill(values)
            if self.run(command) == 0:
                return True
            if self.tries_again and self.run(command) == 0:
                return True
        self.read_help((guided or known).command if guided or known else "")
        return known is not None and self.run(known.fill(values)) == 0

    def read_help(self, command: str) -> None:
        parts = command.split()
        if parts:
            # git shows manual pages for its subcommands, which few machines have installed.
            asked = parts[:1] if parts[0] == "git" else parts[:2]
            self.run(f"{' '.join(asked)} --help")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--answer", type=Path, required=True)
    parser.add_argument("prompt")
    options = parser.parse_args()
    guidance = options.workspace / "AGENTS.md"
    agent = Agent(
        options.workspace,
        options.events,
        guidance.read_text(encoding="utf-8") if guidance.exists() else "",
        (Path(__file__).parent / "knowledge.md").read_text(encoding="utf-8"),
    )
    steps = STEP.findall(options.prompt)
    agent.say(f"I see {len(steps)} steps.")
    for skill in find_skills(options.workspace, options.prompt):
        agent.load(skill)
    open_steps = [step for step in steps if not agent.carry_out(step)]
    for step in open_steps:
        agent.say(f"I could not do this: {step}")
    done = f"Done: {len(steps) - len(open_steps)} of {len(steps)} steps."
    agent.say(done)
    undone = [f"I could not do this: {step}" for step in open_steps]
    options.answer.write_text("\n".join([*undone, done]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
