"""Scripts that inform after the gates and never decide (`scripts.evaluators` of llm-tool-test)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from evaluators.evidence import Evidence
from evaluators.gates.base_gate import NOT_RUN, excerpt
from evaluators.json_values import NoJson, decode_json
from evaluators.model import CommandResult, Json, Score
from evaluators.values import Value


class EvaluatorScript(Value):
    """A script that informs after the gates and never decides (`scripts.evaluators`)."""

    command: str
    name: str
    timeout_seconds: float = 60.0
    network: bool = False


class ScriptResult(Struct, frozen=True):
    """What an evaluator script said; None is *not said*."""

    name: str
    score: float | None = None
    """Between 0 and 1."""
    summary: str | None = None
    metrics: Json = None
    error: str | None = None
    warnings: tuple[str, ...] = ()


def scores(wanted: Sequence[EvaluatorScript], evidence: Evidence) -> tuple[Score, ...]:
    """Return one score for each evaluator script; its errors are told and break nothing."""
    return tuple(_score(script, evidence) for script in wanted)


def _score(script: EvaluatorScript, evidence: Evidence) -> Score:
    if evidence.workspace is None:
        return Score("scripts", script.name, message=NOT_RUN)
    result = run_script(script, evidence)
    detail = {"summary": result.summary, "metrics": result.metrics, "error": result.error}
    if result.warnings:
        detail["warnings"] = list(result.warnings)
    return Score("scripts", script.name, result.score, None, result.error or result.summary or "", detail)


def run_script(script: EvaluatorScript, evidence: Evidence) -> ScriptResult:
    """Run an evaluator script in the evidence's workspace, which must be there, and read what it printed."""
    if evidence.workspace is None:
        raise ValueError(f"The script '{script.name}' needs a workspace.")
    ended = evidence.workspace.run(
        script.command,
        timeout_seconds=script.timeout_seconds,
        env=evidence.command_env,
        network=script.network,
    )
    if ended.timed_out:
        return ScriptResult(script.name, error=f"Timed out after {script.timeout_seconds:g} s")
    return read_output(script.name, ended)


def read_output(name: str, ended: CommandResult) -> ScriptResult:
    """Return what a script that ended by itself said: a JSON object with score, summary and metrics."""
    if ended.exit_code is None:
        return ScriptResult(name, error=ended.error or "The script could not be run.")
    if ended.exit_code != 0:
        return ScriptResult(
            name, error=f"Exit code {ended.exit_code}: {excerpt(ended.stderr.strip())}".rstrip()
        )
    try:
        said = decode_json(ended.stdout)
    except NoJson:
        return ScriptResult(name, summary=excerpt(ended.stdout.strip()), error="Invalid JSON output")
    return _said(name, said) if isinstance(said, dict) else ScriptResult(name)


def _said(name: str, said: dict[str, Json]) -> ScriptResult:
    score, warnings = _clamped(said.get("score"))
    summary = said.get("summary")
    return ScriptResult(
        name,
        score=score,
        summary=summary if isinstance(summary, str) else None,
        metrics=said.get("metrics"),
        warnings=warnings,
    )


def _clamped(score: Json) -> tuple[float | None, tuple[str, ...]]:
    """Return the score between 0 and 1 and what was wrong with it; None when it is no number."""
    if score is None:
        return None, ()
    if isinstance(score, bool) or not isinstance(score, int | float) or math.isnan(score):
        return None, (f"The score {score!r} is not a number and was left out.",)
    clamped = min(max(score, 0), 1)
    warning = f"The score {score} lies outside 0 to 1 and was taken as {clamped}."
    return float(clamped), () if clamped == score else (warning,)
