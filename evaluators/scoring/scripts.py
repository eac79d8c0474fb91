"""Runs a judge's script: JSON on stdin, JSON with a score on stdout."""

from __future__ import annotations

import json
import shlex

from evaluators.evidence import Evidence
from evaluators.gates.base import NOT_RUN, excerpt
from evaluators.model import CommandResult, Json
from evaluators.printed_json import whole_or_last_line
from evaluators.scoring.base import Finding, clamped, sentences


def run_judge_script(
    script: str, given: Json, evidence: Evidence, *, cwd: str, timeout_seconds: float, network: bool
) -> Finding:
    """Return the finding of a script; an error where it could not run, timed out or failed.

    It runs in `cwd` of the files that came with the scenario, else in the workspace.
    """
    place = evidence.bundle or evidence.workspace
    if place is None:
        return Finding(None, error=NOT_RUN)
    command = f"cd {shlex.quote(cwd)} || exit 127\n{script}" if cwd and evidence.bundle else script
    ended = place.run(
        command,
        timeout_seconds=timeout_seconds,
        env=evidence.command_env,
        stdin=json.dumps(given, indent=2, ensure_ascii=False),
        network=network,
    )
    return _found(script, ended, timeout_seconds)


def _found(script: str, ended: CommandResult, timeout_seconds: float) -> Finding:
    more: dict[str, Json] = {
        "script": script,
        "exit_code": ended.exit_code,
        "stdout": excerpt(ended.stdout),
        "stderr": excerpt(ended.stderr),
    }
    said = whole_or_last_line(ended.stdout)
    failure = _failure(ended, timeout_seconds, said_something=isinstance(said, dict))
    if failure:
        return Finding(None, misses=(f"Code evaluator failed: {failure}",), error=failure, more=more)
    if not isinstance(said, dict):
        more["judge_failure"] = "The script printed no JSON object, so the score is 0."
        return Finding(0.0, more=more)
    score = clamped(said.get("score"))
    if score is None:
        more["judge_failure"] = "The script printed no score, so the score is 0."
    reasoning = said.get("reasoning")
    return Finding(
        score or 0.0,
        sentences(said.get("hits")),
        sentences(said.get("misses")),
        reasoning.strip() if isinstance(reasoning, str) else "",
        more=more,
    )


def _failure(ended: CommandResult, timeout_seconds: float, *, said_something: bool) -> str:
    """Return why a script could not judge; a script that failed quietly and yet gave its JSON could."""
    if ended.timed_out:
        return f"The judge's script timed out after {timeout_seconds:g} s."
    if ended.exit_code is None:
        return ended.error or "The judge's script could not be run."
    if ended.exit_code == 0 or (said_something and not ended.stderr.strip()):
        return ""
    told = excerpt(ended.stderr.strip() or ended.stdout.strip())
    return f"The judge's script exited with code {ended.exit_code}: {told}".rstrip(" :")
