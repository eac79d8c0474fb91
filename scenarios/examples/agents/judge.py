#!/usr/bin/env python3
"""A judge that follows rules: no model. Reads a judge's prompt on stdin, answers with the rubric's JSON.

Each criterion starts at 1.0 and loses points for problems in the prompt: failed commands, commands repeated
after a failure, help that had to be read, steps that the agent could not do. A statement with code holds if a command
has the code, one about failures if no command failed, and any other if the agent left no step undone.
"""

from __future__ import annotations

import json
import re
import sys

CRITERION = re.compile(r"^- (?P<id>[\w.-]+) \(weight (?P<weight>[\d.]+)\)", re.MULTILINE)
NUMBERS = re.compile(
    r"(?P<total>\d+) commands, (?P<failed>\d+) failed, (?P<helps>\d+) asked for help, (?P<retries>\d+) followed a failure"
)
STATEMENT = re.compile(r"^(?P<number>\d+)\. (?P<text>.+)$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"^(?:\[tool_call[^\]]*\]|\$) (.+)$", re.MULTILINE)
UNDONE = re.compile(r"I could not do this: (.+)")
FAILED = re.compile(
    r"^\[tool_call[^\]]*\] (?P<command>.+)\n\[tool_result[^\]]*exit (?!0\])\d+\]", re.MULTILINE
)


def judge(prompt: str) -> dict[str, object]:
    numbers = {
        name: int(value) for name, value in (NUMBERS.search(prompt) or re.search("", "")).groupdict().items()
    }
    total, failed = max(numbers.get("total", 0), 1), numbers.get("failed", 0)
    undone = UNDONE.findall(prompt)
    if "\n# Statements\n" in prompt:
        asked = prompt.partition("\n# Statements\n")[2].partition("\n# ")[0]
        decisions = [
            decide(match, COMMAND.findall(prompt), failed, len(undone)) for match in STATEMENT.finditer(asked)
        ]
        return {"statements": decisions, "confidence": 1.0}
    scores = {
        match["id"]: score(match["id"], total, failed, numbers, len(undone))
        for match in CRITERION.finditer(prompt)
    }
    weights = {match["id"]: float(match["weight"]) for match in CRITERION.finditer(prompt)}
    weighted = sum(scores[name] * weights[name] for name in scores) / (sum(weights.values()) or 1.0)
    issues = [f"Could not do: {step}" for step in undone] + failures(prompt, numbers.get("retries", 0))
    highlights = [] if failed else ["Every command worked the first time."]
    highlights += ["Did every step of the task."] if not undone else []
    return {
        "scores": scores,
        "reasons": {name: reason(name, total, failed, numbers, len(undone)) for name in scores},
        "weighted_score": round(weighted, 4),
        "confidence": 1.0,
        "issues": issues[:6],
        "highlights": highlights,
    }


def decide(statement: re.Match[str], commands: list[str], failed: int, undone: int) -> dict[str, object]:
    """Whether a statement holds, and what shows it."""
    text = statement["text"]
    code = CODE.findall(text)
    if code:
        seen = [command for command in commands if all(part in command for part in code)]
        evidence, holds = f"`{seen[0]}`" if seen else "No such command.", bool(seen)
    elif "failed" in text:
        evidence, holds = f"Failed commands: {failed}.", not failed
    else:
        evidence, holds = f"Steps left undone: {undone}.", not undone
    return {"number": int(statement["number"]), "evidence": evidence, "holds": holds}


def score(criterion: str, total: int, failed: int, numbers: dict[str, int], undone: int) -> float:
    """Rules by the words in a criterion's name."""
    if "completion" in criterion:
        return round(max(0.0, 1.0 - 0.4 * undone), 2)
    if "documentation" in criterion:
        return round(max(0.0, 1.0 - 0.25 * (failed + numbers.get("helps", 0))), 2)
    return round(1.0 - failed / total, 2)


def reason(criterion: str, total: int, failed: int, numbers: dict[str, int], undone: int) -> str:
    """Why a criterion has its score, by the same rules."""
    if "completion" in criterion:
        return f"Steps left undone: {undone}." if undone else "Did every step."
    if "documentation" in criterion:
        return f"Failed commands: {failed}; help pages read: {numbers.get('helps', 0)}."
    return f"Failed commands: {failed} of {total}."


def failures(prompt: str, retries: int) -> list[str]:
    seen = dict.fromkeys(FAILED.findall(prompt))
    sentences = [f"`{command[:100]}` failed." for command in seen]
    times = "once" if retries == 1 else f"{retries} times"
    return [*sentences, f"Repeated a command after it failed, {times}."] if retries else sentences


if __name__ == "__main__":
    print(json.dumps(judge(sys.stdin.read())))
